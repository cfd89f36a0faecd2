"""What comes next in a tuning, as pure functions of its plan and of its trials so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.plan.tuning.halving import thresholds
from orchestrator.plan.tuning.suggest import Tried, suggest
from orchestrator.plan.tuning.tuning_plan import TuningPlan
from orchestrator.store import OPEN, Place, PlannedTrial, TrialState
from search_spaces.tuning import Cell, cell_count

JUDGED_BY = ("done", "pruned", "diverged", "running")
"""Earlier trials in these states set the thresholds. How far the losses of others are recorded is chance: a process
that died may not have told its last epochs."""
SUGGESTION_SEED = 2021
"""Of every search: with the same results a search asks for the same cells, whoever runs it."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """A trial of a tuning and what the store knows of it."""

    trial: PlannedTrial
    place: Place
    cell: Cell | None
    """Of stage 2, where the trial is one of its cells and no final one."""
    state: TrialState
    losses: dict[int, float]
    """Validation loss in nats per token after each epoch."""

    @property
    def is_open(self) -> bool:
        """Whether it has still to run, or runs."""
        return self.state in OPEN


def next_trials(plan: TuningPlan, members: Sequence[Member]) -> list[PlannedTrial]:
    """What to plan next: one trial of stage 2, or else the final trials of sides whose stages are over, or nothing.

    The side with the fewest trials of stage 2 gets the next one, so that all have equally many at any time. `members`
    are in plan order. No side's choice depends on another's results.
    """
    side = _next_side(plan, members)
    return finals(plan, members) if side is None else [_searched(plan, members, side)]


def finals(plan: TuningPlan, members: Sequence[Member]) -> list[PlannedTrial]:
    """Final trials that are no members yet; none before every side has had its budget."""
    if _next_side(plan, members) is not None:
        return []
    present = {member.trial.trial_id for member in members}
    trials: list[PlannedTrial] = []
    for side in plan.bases:
        tuned = _tuned(members, side)
        done = [member for member in tuned if member.state == "done"]
        if done and not any(member.is_open for member in tuned):
            # The least loss so far is that of the weights that are kept; the earliest of equals is the best.
            best = min(done, key=lambda member: min(member.losses.values()))
            trials += [trial for trial in plan.final(side, best.trial.config) if trial.trial_id not in present]
    return trials


def stop_above(members: Sequence[Member], trial: Member) -> dict[int, float]:
    """The validation losses above which a searched trial stops, by epoch, from its side's earlier trials."""
    tuned = _tuned(members, trial.place.side)
    earlier = [member.losses for member in tuned[: tuned.index(trial)] if member.state in JUDGED_BY]
    return thresholds(trial.trial.config["training"]["epochs"], earlier)


def in_order(plan: TuningPlan, trials: Sequence[PlannedTrial]) -> list[PlannedTrial]:
    """A tuning's trials in plan order: stage 1, stage 2 by number, the final ones; within these, side by side."""
    sides, stages = list(plan.bases), ["stage1", "stage2", "final"]

    def position(trial: PlannedTrial) -> tuple[int, int, int]:
        assert trial.place is not None, f"{trial.name} is no trial of a tuning"
        return stages.index(trial.place.stage), trial.place.number or 0, sides.index(trial.place.side)

    return sorted(trials, key=position)  # a stable sort: equals keep the order in which they were planned


def _next_side(plan: TuningPlan, members: Sequence[Member]) -> str | None:
    """The side that gets the next trial of stage 2; None once all have had their budget, or every cell."""
    if plan.search == "grid":
        return None
    counts = {side: _searched_count(members, side) for side in plan.bases}
    cells = cell_count(plan.tuning.stage2)
    with_room = [side for side in counts if counts[side] < plan.budget and len(_history(members, side)) < cells]
    return min(with_room, key=counts.__getitem__, default=None)


def _searched(plan: TuningPlan, members: Sequence[Member], side: str) -> PlannedTrial:
    assert plan.search != "grid", "all trials of a grid are planned from the start"
    history = _history(members, side)
    cell = suggest(plan.tuning.stage2, method=plan.search, seed=SUGGESTION_SEED, history=history)
    assert cell is not None, f"{side} was to get another cell after the last one"
    return plan.searched(side, 1 + _searched_count(members, side), cell)


def _tuned(members: Sequence[Member], side: str) -> list[Member]:
    """The side's trials of stages 1 and 2 in plan order."""
    return [member for member in members if member.place.side == side and member.place.stage != "final"]


def _searched_count(members: Sequence[Member], side: str) -> int:
    """How many trials of stage 2 the side has."""
    return sum(member.place.stage == "stage2" for member in _tuned(members, side))


def _history(members: Sequence[Member], side: str) -> list[Tried]:
    """The side's trials that are cells of stage 2 (one of stage 1 may be, too)."""
    return [
        Tried(cell=member.cell, state=member.state, losses=member.losses)
        for member in _tuned(members, side)
        if member.cell is not None
    ]
