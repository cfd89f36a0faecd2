"""How long trials take, from those that are done: better than any count of operations."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.display import duration

if TYPE_CHECKING:
    from orchestrator.plan import Plan, TrialPlan
    from orchestrator.store.interface import Store


@dataclass(frozen=True, kw_only=True)
class Timing:
    """What the done trials of one output layer took, whole, with validation and measurements."""

    trials: int
    seconds: float
    """Mean of a trial."""


def timings(store: Store, *, scale: str, corpus: str, overrides: str, gpu: bool) -> dict[str, Timing]:
    """Output layer -> timing, over all studies of this scale, corpus and overrides; of trials on a GPU, or on cores."""
    seconds: dict[str, dict[str, float]] = {}
    for summary in store.studies():
        key = summary.key
        if (key.scale, key.corpus, key.overrides) != (scale, corpus, overrides):
            continue
        environments = store.environments(key)
        for row in store.results(key):
            on_gpu = environments.get(row["trial_id"], {}).get("device") == "cuda"
            if "wall_seconds" in row["metrics"] and on_gpu == gpu:
                layer = row["config"]["output_layer"]["name"]
                seconds.setdefault(layer, {})[row["trial_id"]] = row["metrics"]["wall_seconds"]
    return {
        layer: Timing(trials=len(found), seconds=math.fsum(found.values()) / len(found))
        for layer, found in seconds.items()
    }


def expected_seconds(
    trials: Sequence[TrialPlan], known: Mapping[str, Timing], done: Collection[str], *, gpu: bool
) -> tuple[dict[str, float], str]:
    """What each trial that is not done will take, and on what basis that is said.

    A layer without a done trial takes its estimate, corrected by how far the estimates of the measured layers are off.
    """
    estimates = {t.trial_id: 3600 * (t.estimate.gpu_hours if gpu else t.estimate.core_hours) for t in trials}
    layers = {t.trial_id: t.config.output_layer.name for t in trials}
    ratios = sorted(known[layers[i]].seconds / seconds for i, seconds in estimates.items() if layers[i] in known)
    correction = ratios[len(ratios) // 2] if ratios else 1.0
    expected = {
        trial_id: known[layers[trial_id]].seconds if layers[trial_id] in known else correction * seconds
        for trial_id, seconds in estimates.items()
        if trial_id not in done
    }
    count = sum(timing.trials for timing in known.values())
    if count:
        return expected, f"from {count} done, by output layer"
    return expected, "from the published times on a V100" if gpu else "from the number of operations"


def remaining(plans: Sequence[Plan], store: Store, *, gpu: bool) -> list[str]:
    """A sentence for each scale, corpus and overrides of which trials are done: how long the others will take."""
    sentences = []
    for scale, corpus, overrides in dict.fromkeys((p.key.scale, p.key.corpus, p.key.overrides) for p in plans):
        known = timings(store, scale=scale, corpus=corpus, overrides=overrides, gpu=gpu)
        if not known:
            continue
        alike = [p for p in plans if (p.key.scale, p.key.corpus, p.key.overrides) == (scale, corpus, overrides)]
        trials = {trial.trial_id: trial for plan in alike for trial in plan.trials}
        done = {trial_id for trial_id, state in store.states(list(trials)).items() if state == "done"}
        expected, _ = expected_seconds(list(trials.values()), known, done, gpu=gpu)
        measured = sum(timing.trials for timing in known.values())
        sentences.append(
            f"Scale {scale}, corpus {corpus}: {len(done)} of {len(trials)} trials are done; by the times of {measured} "
            f"measured so far, the others take {duration(math.fsum(expected.values()))} of one "
            f"{'GPU' if gpu else 'core'}."
        )
    return sentences
