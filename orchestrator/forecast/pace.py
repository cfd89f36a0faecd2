"""What a plan will take: the stages of a tuning, and times of trials from those that are done,
which say more than any count of operations alone."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import ValidationError

from orchestrator.forecast.estimates import core_seconds, estimate, gpu_seconds
from orchestrator.plan import RANDOM_FIRST
from orchestrator.store import COMPLETE
from orchestrator.words import duration, on_corpus
from search_spaces.tuning import cell_count
from trainables.config import AnyConfig, read_config
from trainables.corpora import CorpusIdentity
from trainables.errors import UserError

if TYPE_CHECKING:
    from orchestrator.plan import Plan, TuningPlan
    from orchestrator.store import Store


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How many times their estimates the done trials of one scale, corpus and overrides took, by
    family."""

    ratios: Mapping[str, float]
    trials: int
    """How many were measured."""
    corpus: CorpusIdentity
    gpu: bool

    def seconds(self, config: AnyConfig) -> float:
        """What a trial takes, with validation and measurements: its estimate, corrected as those of
        its family.

        A family without a done trial is taken to be off as the median of the others.
        """
        usual = statistics.median(self.ratios.values()) if self.ratios else 1.0
        return self.ratios.get(config.family, usual) * _estimated_seconds(
            config, self.corpus, gpu=self.gpu
        )

    @property
    def basis(self) -> str:
        """What `seconds` is taken from."""
        if self.trials:
            return f"from {self.trials} done, by output layer"
        return "from the published times on a V100" if self.gpu else "from the number of operations"


def measured_pace(plan: Plan, store: Store, *, gpu: bool) -> Pace:
    """From all studies of the plan's scale, corpus and overrides; of trials on a GPU, or on
    cores."""
    measured: set[str] = set()
    taken_s, estimated_s = defaultdict[str, float](float), defaultdict[str, float](float)
    for summary in store.studies():
        if not _alike(plan, summary.key.scale, summary.key.corpus, summary.key.overrides):
            continue
        try:
            environments, rows = store.environments(summary.key), store.results(summary.key)
        except UserError:  # damage in a study is told where its results are wanted
            continue
        for row in rows:
            on_gpu = environments.get(row["trial_id"], {}).get("device") == "cuda"
            if "wall_seconds" not in row["metrics"] or on_gpu != gpu or row["trial_id"] in measured:
                continue
            with suppress(
                ValidationError
            ):  # a config of an older version, whose time says little of today's
                config = read_config(row["config"])
                measured.add(row["trial_id"])
                taken_s[config.family] += row["metrics"]["wall_seconds"]
                estimated_s[config.family] += _estimated_seconds(config, plan.corpus, gpu=gpu)
    ratios = {family: taken_s[family] / estimated_s[family] for family in taken_s}
    return Pace(ratios=ratios, trials=len(measured), corpus=plan.corpus, gpu=gpu)


def configs_left(plan: Plan, store: Store) -> dict[str, AnyConfig]:
    """What has yet to be trained, by trial id; trials that a tuning has yet to name, or may stop
    early, stand for their side's own config, whole, under a name of their own."""
    if plan.tuning is None:
        states = store.states([trial.trial_id for trial in plan.trials])
        return {
            trial.trial_id: trial.config
            for trial in plan.trials
            if states.get(trial.trial_id) != "done"
        }
    sides = Counter(
        row.place.side for row in store.trials(plan.key) if row.place and row.state in COMPLETE
    )
    trials_per_side = plan.total // len(plan.tuning.bases)
    left: dict[str, AnyConfig] = {}
    for side, base in plan.tuning.bases.items():
        numbers = range(sides[side], trials_per_side)
        left |= {f"{plan.key} {side} {number}": plan.tuning.resolve(base) for number in numbers}
    return left


def remaining(plans: Sequence[Plan], store: Store, *, gpu: bool) -> list[str]:
    """A sentence for each scale, corpus and overrides of which trials are done: how long the others
    will take."""
    sentences = []
    for scale, corpus, overrides in dict.fromkeys(
        (p.key.scale, p.key.corpus, p.key.overrides) for p in plans
    ):
        alike = [plan for plan in plans if _alike(plan, scale, corpus, overrides)]
        pace = measured_pace(alike[0], store, gpu=gpu)
        if not pace.trials:
            continue
        left = {key: config for plan in alike for key, config in configs_left(plan, store).items()}
        untuned = {trial.trial_id for plan in alike if plan.tuning is None for trial in plan.trials}
        total = len(untuned) + sum(plan.total for plan in alike if plan.tuning is not None)
        seconds = math.fsum(map(pace.seconds, left.values()))
        others = (
            f"; by the times of {pace.trials} measured so far, the others take {duration(seconds)} "
            f"of one "
            f"{'GPU' if gpu else 'core'}"
        )
        done = f"Scale {scale}{on_corpus(corpus)}: {total - len(left)} of {total} trials are done"
        sentences.append(f"{done}{others if left else ''}.")
    return sentences


def _alike(plan: Plan, scale: str, corpus: str, overrides: str) -> bool:
    return (plan.key.scale, plan.key.corpus, plan.key.overrides) == (scale, corpus, overrides)


def _estimated_seconds(config: AnyConfig, corpus: CorpusIdentity, *, gpu: bool) -> float:
    return gpu_seconds(config, corpus) if gpu else core_seconds(config, corpus)


@dataclass(frozen=True, kw_only=True)
class StageOutlook:
    """One stage: how many trials and how they are chosen, and the hours that they take if none is
    stopped early."""

    sentence: str
    gpu_hours: float
    core_hours: float


def outlook(plan: Plan) -> list[StageOutlook]:
    """The stages of a plan, empty for a study that tunes nothing; hours are those of each side's
    own config."""
    if plan.tuning is None:
        return []
    tuning = plan.tuning
    estimates = [estimate(tuning.resolve(base), plan.corpus) for base in tuning.bases.values()]
    gpu_hours, core_hours = (
        sum(e.gpu_hours for e in estimates),
        sum(e.core_hours for e in estimates),
    )
    stages = (
        ("stage 1", len(tuning.stage1_cells), f"{len(tuning.stage1_cells)} a side"),
        ("stage 2", tuning.budget, _search_choice(tuning)),
        (
            "final",
            len(tuning.seeds),
            f"{len(tuning.seeds)} seeds of each side's best by validation loss",
        ),
    )
    return [
        StageOutlook(
            sentence=f"{name}: {trials * len(estimates):,} trials, {choice}",
            gpu_hours=trials * gpu_hours,
            core_hours=trials * core_hours,
        )
        for name, trials, choice in stages
    ]


def _search_choice(tuning: TuningPlan) -> str:
    all_cells = f"{cell_count(tuning.tuning.stage2):,} cells"
    if tuning.search == "grid":
        return f"all {all_cells} of each side"
    if tuning.search == "random":
        return f"{tuning.budget} a side at random from {all_cells}, poor ones stopped early"
    drawn = "all" if tuning.budget <= RANDOM_FIRST else f"the first {RANDOM_FIRST}"
    return (
        f"{tuning.budget} a side, chosen by TPE from {all_cells} as results come in ({drawn} at "
        f"random), poor ones "
        "stopped early"
    )
