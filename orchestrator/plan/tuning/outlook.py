"""What a tuning will run, stage by stage, as far as that can be said before there are results."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.plan.estimates import estimate
from orchestrator.plan.study_plan import Plan
from orchestrator.plan.tuning.suggest import RANDOM_FIRST
from orchestrator.plan.tuning.tuning_plan import TuningPlan
from search_spaces.tuning import cell_count


@dataclass(frozen=True, kw_only=True)
class StageOutlook:
    """One stage: how many trials and how they are chosen, and the hours that they take if none is stopped early."""

    sentence: str
    gpu_hours: float
    core_hours: float


def outlook(plan: Plan) -> list[StageOutlook]:
    """The stages of a plan, empty for a study that tunes nothing; hours are those of each side's own config."""
    if plan.tuning is None:
        return []
    tuning = plan.tuning
    estimates = [estimate(tuning.resolve(base), plan.corpus) for base in tuning.bases.values()]
    gpu_hours, core_hours = sum(e.gpu_hours for e in estimates), sum(e.core_hours for e in estimates)
    stages = (
        ("stage 1", len(tuning.stage1_cells), f"{len(tuning.stage1_cells)} a side"),
        ("stage 2", tuning.budget, _search_choice(tuning)),
        ("final", len(tuning.seeds), f"{len(tuning.seeds)} seeds of each side's best by validation loss"),
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
    return (
        f"{tuning.budget} a side, chosen by TPE from {all_cells} as results come in (the first {RANDOM_FIRST} at "
        "random), poor ones stopped early"
    )
