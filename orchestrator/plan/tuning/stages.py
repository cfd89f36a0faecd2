"""What comes next in a tuning, as pure functions of its plan and of what is known of its trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.plan.tuning.halving import thresholds
from orchestrator.plan.tuning.suggest import Tried, suggest
from orchestrator.plan.tuning.tuning_plan import TuningPlan
from orchestrator.store.records import OPEN, Place, PlannedTrial, TrialState
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

    @property
    def best_loss(self) -> float:
        """The least validation loss so far: that of the weights that are kept."""
        return min(self.losses.values())


def next_trials(plan: TuningPlan, members: Sequence[Member]) -> list[PlannedTrial]:
    """What to plan next: one trial of stage 2, or else the final trials of sides whose stages are over, or nothing.

    The side with the fewest trials of stage 2 is asked for the next one, so that all have equally many at any time.
    `members` are in plan order. Sides never know of each other's results.
    """
    side = _next_side(plan, members)
    return finals(plan, members) if side is None else [_searched(plan, members, side)]


def finals(plan: TuningPlan, members: Sequence[Member]) -> list[PlannedTrial]:
    """Final trials that are no members yet; none before every side has had its budget."""
    if _next_side(plan, members) is not None:
        return []
    known = {member.trial.trial_id for member in members}
    found: list[PlannedTrial] = []
    for side in plan.bases:
        best = best_of(members, side)
        if best is not None and not any(member.is_open for member in _tuned(members, side)):
            found += [trial for trial in plan.final(side, best.trial.config) if trial.trial_id not in known]
    return found


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


def best_of(members: Sequence[Member], side: str) -> Member | None:
    """The side's done trial of stages 1 and 2 with the least validation loss, the earliest of equals; None before."""
    done = [member for member in _tuned(members, side) if member.state == "done"]
    return min(done, key=lambda member: member.best_loss, default=None)


def _next_side(plan: TuningPlan, members: Sequence[Member]) -> str | None:
    """The side that is asked for its next trial of stage 2; None once all have had their budget, or every cell."""
    if plan.search == "grid":
        return None
    asked = {side: _asked(members, side) for side in plan.bases}
    cells = cell_count(plan.tuning.stage2)
    with_room = [side for side in asked if asked[side] < plan.budget and len(_tried(members, side)) < cells]
    return min(with_room, key=asked.__getitem__, default=None)


def _searched(plan: TuningPlan, members: Sequence[Member], side: str) -> PlannedTrial:
    assert plan.search != "grid", "the trials of a grid are all known"
    history = _tried(members, side)
    cell = suggest(plan.tuning.stage2, method=plan.search, seed=SUGGESTION_SEED, history=history)
    assert cell is not None, f"{side} was asked for a cell after the last one"
    return plan.searched(side, 1 + _asked(members, side), cell)


def _tuned(members: Sequence[Member], side: str) -> list[Member]:
    """The side's trials of stages 1 and 2 in plan order."""
    return [member for member in members if member.place.side == side and member.place.stage != "final"]


def _asked(members: Sequence[Member], side: str) -> int:
    """How many trials of stage 2 the side has."""
    return sum(member.place.stage == "stage2" for member in _tuned(members, side))


def _tried(members: Sequence[Member], side: str) -> list[Tried]:
    """The side's trials that are cells of stage 2 (one of stage 1 may be, too)."""
    return [
        Tried(cell=member.cell, state=member.state, losses=member.losses)
        for member in _tuned(members, side)
        if member.cell is not None
    ]
