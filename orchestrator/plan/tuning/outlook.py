"""What a tuning will run, stage by stage, as far as that can be said before there are results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator.plan.estimates import estimate
from orchestrator.plan.study_plan import Plan
from orchestrator.plan.tuning.suggest import RANDOM_FIRST
from orchestrator.plan.tuning.tuning_plan import TuningPlan
from search_spaces.tuning import cell_count


@dataclass(frozen=True, kw_only=True)
class StageOutlook:
    """One stage: how many trials of how many hours, and which."""

    name: str
    trials: int
    gpu_hours: float
    """Where no trial is stopped early."""
    core_hours: float
    which: str

    def __str__(self) -> str:
        return f"{self.name}: {self.trials:,} trials, {self.which}"


def outlook(plan: Plan) -> list[StageOutlook]:
    """The stages of a plan, empty for a study that tunes nothing; hours are those of each side's own config."""
    return [] if plan.tuning is None else list(_stages(plan, plan.tuning))


def _stages(plan: Plan, tuning: TuningPlan) -> Iterator[StageOutlook]:
    estimates = [estimate(tuning.resolve(base), plan.corpus) for base in tuning.bases.values()]
    gpu_hours, core_hours = sum(e.gpu_hours for e in estimates), sum(e.core_hours for e in estimates)
    every = f"{cell_count(tuning.tuning.stage2):,} cells"
    searched = {
        "grid": f"all {every} of each side",
        "random": f"{tuning.budget} a side at random from {every}, poor ones stopped early",
        "tpe": f"{tuning.budget} a side, chosen by TPE from {every} as results come in ({_at_random(tuning.budget)}), "
        "poor ones stopped early",
    }
    for name, a_side, which in (
        ("stage 1", len(tuning.stage1_cells), f"{len(tuning.stage1_cells)} a side"),
        ("stage 2", tuning.budget, searched[tuning.search]),
        ("final", len(tuning.seeds), f"{len(tuning.seeds)} seeds of each side's best by validation loss"),
    ):
        yield StageOutlook(
            name=name,
            trials=a_side * len(estimates),
            gpu_hours=a_side * gpu_hours,
            core_hours=a_side * core_hours,
            which=which,
        )


def _at_random(budget: int) -> str:
    if budget <= RANDOM_FIRST:
        return f"all at random, as TPE begins after {RANDOM_FIRST}"
    return f"the first {RANDOM_FIRST} at random"
