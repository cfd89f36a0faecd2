"""Stages of a tuned study and their costs. A side is a config that the study tunes."""

from __future__ import annotations

from orchestrator.forecast.estimates import Estimate, estimate
from orchestrator.plan import RANDOM_FIRST, Plan, TuningPlan
from search_spaces.tuning import cell_count
from trainables.config import epoch_count


def stages(plan: Plan) -> dict[str, Estimate]:
    """Return the hours of a plan's stages, by description; {} if it does not tune.

    Hours are those of untuned configs if no trial is stopped early.
    """
    tuning = plan.tuning
    if tuning is None:
        return {}
    sides = [estimate(tuning.resolve(base), plan.corpus) for base in tuning.bases.values()]
    cell_total, seeds = len(tuning.stage1_cells), len(tuning.seeds)
    return {
        f"{name}: {trials * len(sides):,} trials, {choice}": Estimate(
            gpu_hours=trials * sum(side.gpu_hours for side in sides),
            core_hours=trials * sum(side.core_hours for side in sides),
        )
        for name, trials, choice in (
            ("stage 1", cell_total, f"{cell_total} per side"),
            ("stage 2", tuning.budget, _search_choice(tuning)),
            ("final", seeds, f"{seeds} new seeds of each side's best config"),
        )
    }


def _search_choice(tuning: TuningPlan) -> str:
    cells = f"{cell_count(tuning.tuning.stage2):,} cells"
    if tuning.search == "grid":
        return f"all {cells} of each side"
    is_endless = any(epoch_count(base.model_dump()) is None for base in tuning.bases.values())
    poor = "" if is_endless else ", poor ones stopped early"
    if tuning.search == "random":
        return f"{tuning.budget} per side at random from {cells}{poor}"
    random_part = "all" if tuning.budget <= RANDOM_FIRST else f"the first {RANDOM_FIRST}"
    return (
        f"{tuning.budget} per side, chosen from {cells} by TPE from earlier results "
        f"({random_part} at random){poor}"
    )
