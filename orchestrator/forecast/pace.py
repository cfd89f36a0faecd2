"""How long a plan takes: the times of done trials say more than any count of operations alone."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import ValidationError

from orchestrator.forecast.estimates import core_seconds, gpu_seconds
from orchestrator.plan import Plan
from orchestrator.store import COMPLETE, StudyKey
from orchestrator.words import duration, on_corpus
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
        if _setup(summary.key) != _setup(plan.key):
            continue
        try:
            environments, rows = store.environments(summary.key), store.results(summary.key)
        except UserError:  # damage in a study is reported when its results are wanted
            continue
        for row in rows:
            on_gpu = environments.get(row["trial_id"], {}).get("device") == "cuda"
            if "wall_seconds" not in row["metrics"] or on_gpu != gpu or row["trial_id"] in measured:
                continue
            with suppress(ValidationError):  # an older version's time says little of today's
                config = read_config(row["config"])
                measured.add(row["trial_id"])
                taken_s[config.family] += row["metrics"]["wall_seconds"]
                estimated_s[config.family] += _estimated_seconds(config, plan.corpus, gpu=gpu)
    ratios = {family: taken_s[family] / estimated_s[family] for family in taken_s}
    return Pace(ratios=ratios, trials=len(measured), corpus=plan.corpus, gpu=gpu)


def configs_left(plan: Plan, store: Store) -> dict[str, AnyConfig]:
    """Return what has yet to be trained, by trial id. Trials that a tuning has yet to name, or may
    stop early, have their side's own config and a key of their own."""
    if plan.tuning is None:
        states = store.states([trial.trial_id for trial in plan.trials])
        return {
            trial.trial_id: trial.config
            for trial in plan.trials
            if states.get(trial.trial_id) != "done"
        }
    ended = Counter(
        row.place.side for row in store.trials(plan.key) if row.place and row.state in COMPLETE
    )
    trials_per_side = plan.total // len(plan.tuning.bases)
    return {
        f"{plan.key} {side} {number}": plan.tuning.resolve(base)
        for side, base in plan.tuning.bases.items()
        for number in range(ended[side], trials_per_side)
    }


def remaining(plans: Sequence[Plan], store: Store, *, gpu: bool) -> list[str]:
    """Return a sentence for each scale, corpus and variant with done trials: how long the others
    take."""
    sentences = []
    for setup in dict.fromkeys(_setup(plan.key) for plan in plans):
        alike = [plan for plan in plans if _setup(plan.key) == setup]
        pace = measured_pace(alike[0], store, gpu=gpu)
        if not pace.trials:
            continue
        left = {key: config for plan in alike for key, config in configs_left(plan, store).items()}
        certain = {trial.trial_id for plan in alike if plan.tuning is None for trial in plan.trials}
        total = len(certain) + sum(plan.total for plan in alike if plan.tuning is not None)
        seconds = math.fsum(map(pace.seconds, left.values()))
        others = (
            f"; by the times of {pace.trials} measured so far, the others take "
            f"{duration(seconds)} of one {'GPU' if gpu else 'core'}"
        )
        scale, corpus, _ = setup
        done = f"Scale {scale}{on_corpus(corpus)}: {total - len(left)} of {total} trials are done"
        sentences.append(f"{done}{others if left else ''}.")
    return sentences


def _setup(key: StudyKey) -> tuple[str, str, str]:
    return key.scale, key.corpus, key.overrides


def _estimated_seconds(config: AnyConfig, corpus: CorpusIdentity, *, gpu: bool) -> float:
    return gpu_seconds(config, corpus) if gpu else core_seconds(config, corpus)
