"""Estimate of a plan's time, corrected by the times of done trials."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pydantic import ValidationError

from orchestrator.forecast.estimates import core_seconds, gpu_seconds
from orchestrator.plan import Plan, TuningPlan
from orchestrator.store import COMPLETE, TrialRow
from trainables.config import AnyConfig, read_config
from trainables.errors import UserError

if TYPE_CHECKING:
    from orchestrator.store import Store


def seconds_each(
    configs: Sequence[AnyConfig], plan: Plan, store: Store, *, gpu: bool
) -> tuple[float, str]:
    """Return the mean seconds per trial of `configs`, and a phrase that names the basis.

    A family is trials of similar cost. Its estimate is multiplied by the ratio of actual to
    estimated time of its done trials, or by the median ratio if it has none. Done trials count if
    they have the plan's scale, corpus and variant, and ran on the same device. A user's own trials
    have no estimate before; then the basis is empty.
    """
    estimate_s = partial(gpu_seconds if gpu else core_seconds, corpus=plan.corpus)
    measured_ids: set[str] = set()
    taken_s, estimated_s = defaultdict[str, float](float), defaultdict[str, float](float)
    for summary in store.studies():
        if replace(summary.key, study=plan.key.study) != plan.key:
            continue
        try:
            rows = store.results(summary.key)
        except UserError:  # damage is reported when the study's results are read
            continue
        for row in rows:
            on_gpu = row["environment"].get("device") == "cuda"
            if (
                "wall_seconds" not in row["metrics"]
                or on_gpu != gpu
                or row["trial_id"] in measured_ids
            ):
                continue
            with suppress(ValidationError):  # an older version's time is no guide to today's
                config = read_config(row["config"])
                measured_ids.add(row["trial_id"])
                taken_s[config.family] += row["metrics"]["wall_seconds"]
                estimated_s[config.family] += estimate_s(config)
    ratios = {family: taken_s[family] / estimated_s[family] for family in taken_s}
    if plan.study.is_own and not {config.family for config in configs} <= ratios.keys():
        return 1.0, ""  # a time for which trials are grouped well at any speed
    usual_ratio = statistics.median(ratios.values()) if ratios else 1.0
    seconds = [ratios.get(config.family, usual_ratio) * estimate_s(config) for config in configs]
    if ratios:
        basis = f"from {len(measured_ids)} done trials"
    else:
        basis = "from the published times on a V100" if gpu else "from the number of operations"
    return sum(seconds) / max(1, len(seconds)), basis


def configs_left(tuning: TuningPlan, rows: Iterable[TrialRow]) -> list[AnyConfig]:
    """Return an untuned config for each trial that the tuning still needs."""
    ended_counts = Counter(
        row.position.side for row in rows if row.position and row.state in COMPLETE
    )
    per_side = tuning.total // len(tuning.bases)
    return [
        config
        for side, base in tuning.bases.items()
        for config in [tuning.resolve(base)] * (per_side - ended_counts[side])
    ]
