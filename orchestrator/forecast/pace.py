"""How long a plan takes: the times of done trials say more than any count of operations alone."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pydantic import ValidationError

from orchestrator.forecast.estimates import core_seconds, gpu_seconds
from orchestrator.plan import Plan, TuningPlan
from orchestrator.store import COMPLETE, TrialRow
from trainables.config import AnyConfig, read_config
from trainables.corpora import CorpusIdentity
from trainables.errors import UserError

if TYPE_CHECKING:
    from orchestrator.store import Store


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How far the done trials of a scale, corpus and variant were from their estimates."""

    ratios: Mapping[str, float]
    """By family of trials, measured over estimated time."""
    trials: int
    """How many were measured."""
    corpus: CorpusIdentity
    gpu: bool

    def seconds(self, config: AnyConfig) -> float:
        """Return the time of a trial with validation and measurements.

        A family without a done trial is taken to be off as the median of the others.
        """
        usual = statistics.median(self.ratios.values()) if self.ratios else 1.0
        ratio = self.ratios.get(config.family, usual)
        return ratio * _estimated_seconds(config, self.corpus, gpu=self.gpu)

    @property
    def basis(self) -> str:
        """What `seconds` is taken from."""
        if self.trials:
            return f"from {self.trials} done, by output layer"
        return "from the published times on a V100" if self.gpu else "from the number of operations"


def measured_pace(plan: Plan, store: Store, *, gpu: bool) -> Pace:
    """Return the pace of trials on a GPU, or on cores, of all studies of the plan's scale, corpus
    and variant."""
    measured: set[str] = set()
    taken_s, estimated_s = defaultdict[str, float](float), defaultdict[str, float](float)
    for summary in store.studies():
        if replace(summary.key, study=plan.key.study) != plan.key:
            continue
        try:
            rows = store.results(summary.key)
        except UserError:  # damage in a study is reported when its results are wanted
            continue
        for row in rows:
            on_gpu = row["environment"].get("device") == "cuda"
            if "wall_seconds" not in row["metrics"] or on_gpu != gpu or row["trial_id"] in measured:
                continue
            with suppress(ValidationError):  # an older version's time says little of today's
                config = read_config(row["config"])
                measured.add(row["trial_id"])
                taken_s[config.family] += row["metrics"]["wall_seconds"]
                estimated_s[config.family] += _estimated_seconds(config, plan.corpus, gpu=gpu)
    ratios = {family: taken_s[family] / estimated_s[family] for family in taken_s}
    return Pace(ratios=ratios, trials=len(measured), corpus=plan.corpus, gpu=gpu)


def configs_left(tuning: TuningPlan, rows: Iterable[TrialRow]) -> list[AnyConfig]:
    """Return the configs of a tuning that have yet to be trained: of each side its own, as many
    as it has trials without a result among the store's `rows`."""
    ended = Counter(row.place.side for row in rows if row.place and row.state in COMPLETE)
    per_side = tuning.total // len(tuning.bases)
    return [
        config
        for side, base in tuning.bases.items()
        for config in [tuning.resolve(base)] * (per_side - ended[side])
    ]


def _estimated_seconds(config: AnyConfig, corpus: CorpusIdentity, *, gpu: bool) -> float:
    return gpu_seconds(config, corpus) if gpu else core_seconds(config, corpus)
