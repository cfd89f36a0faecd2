"""What comes next in a tuning, by its plan and the results in the store, where what follows is
registered."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from orchestrator.plan.tuning.search import Tried, suggest, thresholds
from orchestrator.plan.tuning.tuning_plan import TuningPlan
from orchestrator.store import OPEN, Place, PlannedTrial, Store, StudyKey, TrialRow, TrialState
from search_spaces.tuning import Cell, cell_count

JUDGED_BY = ("done", "pruned", "diverged", "running")
"""Earlier trials in these states set the thresholds. How far the losses of others are recorded is
chance: a process that died may not have told its last epochs."""
SUGGESTION_SEED = 2021
"""Of every search: with the same results a search asks for the same cells, whoever runs it."""
STAGES = ("stage1", "stage2", "final")


@dataclass(frozen=True, kw_only=True)
class _Member:
    """A trial of a tuning and what the store knows of it."""

    trial: PlannedTrial
    place: Place
    cell: Cell | None
    """Of stage 2, where the trial is one of its cells and no final one."""
    state: TrialState
    losses: dict[int, float]
    """Validation loss in nats per token after each epoch."""


class Tuner:
    """Gives a dispatcher the trials that nobody can name before others have ended (see
    `StudyWork.source`)."""

    def __init__(
        self,
        plan: TuningPlan,
        key: StudyKey,
        certain: Sequence[PlannedTrial],
        store: Store,
        *,
        plans: bool = True,
    ) -> None:
        """`certain` are the trials of the plan that no result is needed for. Without `plans` no
        trial is planned: the tuner only says which of the study's trials may be stopped early, and
        when."""
        self._plan, self._key, self._store, self._plans = plan, key, store, plans
        self._certain = {trial.trial_id: trial for trial in certain}
        self._cells: dict[str, Cell | None] = {}
        self._losses: dict[tuple[str, TrialState], dict[int, float]] = {}

    def start(self) -> list[PlannedTrial]:
        """Register the certain trials, with those that an earlier run has searched; returns all in
        plan order.

        What was searched beyond the budget, in other spaces, or as the final trials of another best
        is no longer of the study; its results stay in the store."""
        while True:
            rows = self._store.trials(self._key)
            if self._register(
                [*self._certain.values(), *self._searched_within_budget(rows)], instead_of=rows
            ):
                break
        while True:
            members = self._members()
            new = _finals(self._plan, members)
            if not new or self._add(new, members):
                return [member.trial for member in self._members()]

    def more(self, busy: Collection[str]) -> list[PlannedTrial] | None:
        """Trials to run now, of which none is in `busy` (trial ids); empty while there may be some
        later, None at the end."""
        while self._plans:
            members = self._members()
            waiting = [member.trial for member in members if member.state in OPEN]
            if idle := [trial for trial in waiting if trial.trial_id not in busy]:
                return idle
            new = _next_trials(self._plan, members)
            if not new:
                return [] if waiting else None
            # One that another study has run already costs nothing, and another driver may have
            # planned its own meanwhile: the loop looks again.
            self._add(new, members)
        return None

    @property
    def over(self) -> bool:
        """True once every trial has ended and no other one follows."""
        if not self._plans:
            return True
        members = self._members()
        return not any(member.state in OPEN for member in members) and not _next_trials(
            self._plan, members
        )

    def is_searched(self, trial: PlannedTrial) -> bool:
        """Whether the trial may be stopped early, by `stop_above`. Such a trial is taken up by a
        free worker, never in advance, so that as much as can be is known before."""
        return (
            trial.place is not None
            and trial.place.stage == "stage2"
            and trial.trial_id not in self._certain
        )

    def stop_above(self, trial: PlannedTrial) -> dict[int, float]:
        """For a searched trial that starts now: the validation losses above which it is stopped, by
        epoch, from its side's earlier trials.

        Empty where another driver with a smaller budget has dropped the trial meanwhile.
        """
        assert trial.place is not None, f"{trial.name} is no trial of a tuning"
        tuned = _tuned(self._members(), trial.place.side)
        ids = [member.trial.trial_id for member in tuned]
        if trial.trial_id not in ids:
            return {}
        earlier = tuned[: ids.index(trial.trial_id)]
        losses = [member.losses for member in earlier if member.state in JUDGED_BY]
        return thresholds(trial.config["training"]["epochs"], losses)

    def _searched_within_budget(self, rows: Sequence[TrialRow]) -> list[PlannedTrial]:
        searched: dict[str, list[PlannedTrial]] = {side: [] for side in self._plan.bases}
        for row in rows:
            trial = row.planned()
            if (
                trial.place is None
                or trial.place.side not in searched
                or not self.is_searched(trial)
            ):
                continue
            if self._searched_cell(trial.place.side, trial) is not None:
                searched[trial.place.side].append(trial)
        return [trial for trials in searched.values() for trial in trials[: self._plan.budget]]

    def _add(self, new: Sequence[PlannedTrial], members: Sequence[_Member]) -> bool:
        present = [member.trial for member in members]
        return self._register([*present, *new], instead_of=present)

    def _register(
        self, trials: Sequence[PlannedTrial], *, instead_of: Sequence[PlannedTrial]
    ) -> bool:
        """Make the study's members these; those that must run in full and were once stopped early
        are planned again.

        Returns False, with nothing done, where the members are no longer `instead_of`: another
        driver of this study was faster."""
        ordered = _in_order(self._plan, trials)
        if not self._store.register(
            self._key, ordered, instead_of=[trial.trial_id for trial in instead_of]
        ):
            return False
        whole = [trial.trial_id for trial in ordered if not self.is_searched(trial)]
        self._store.reset(whole, states=("pruned",))
        return True

    def _members(self) -> list[_Member]:
        """In plan order."""
        return [self._member(row) for row in self._store.trials(self._key)]

    def _member(self, row: TrialRow) -> _Member:
        trial = row.planned()
        assert trial.place is not None, f"{row.name} is no trial of a tuning"
        cell = (
            None if trial.place.stage == "final" else self._searched_cell(trial.place.side, trial)
        )
        return _Member(
            trial=trial,
            place=trial.place,
            cell=cell,
            state=row.state,
            losses=self._valid_losses(row),
        )

    def _searched_cell(self, side: str, trial: PlannedTrial) -> Cell | None:
        if trial.trial_id not in self._cells:
            self._cells[trial.trial_id] = self._plan.searched_cell(side, trial.config)
        return self._cells[trial.trial_id]

    def _valid_losses(self, row: TrialRow) -> dict[int, float]:
        if row.state in ("planned", "failed"):
            return {}
        if (row.trial_id, row.state) in self._losses:
            return self._losses[row.trial_id, row.state]
        losses = {epoch.epoch: epoch.valid_loss for epoch in self._store.epochs(row.trial_id)}
        if (
            row.state != "running"
        ):  # they change no more, unless another study takes a pruned trial up again
            self._losses[row.trial_id, row.state] = losses
        return losses


def _next_trials(plan: TuningPlan, members: Sequence[_Member]) -> list[PlannedTrial]:
    """What to plan next: one trial of stage 2, or else the final trials of sides whose stages are
    over, or nothing."""
    side = _next_side(plan, members)
    if side is None:
        return _finals(plan, members)
    assert plan.search != "grid", "all trials of a grid are planned from the start"
    cell = suggest(
        plan.tuning.stage2,
        method=plan.search,
        seed=SUGGESTION_SEED,
        history=_history(members, side),
    )
    assert cell is not None, f"{side} was to get another cell after the last one"
    return [plan.searched(side, 1 + _searched_count(members, side), cell)]


def _next_side(plan: TuningPlan, members: Sequence[_Member]) -> str | None:
    """The side with the fewest trials of stage 2, so that all have equally many at any time; None
    once all have had their budget, or every cell. No side's choice depends on another's results."""
    if plan.search == "grid":
        return None
    counts = {side: _searched_count(members, side) for side in plan.bases}
    cells = cell_count(plan.tuning.stage2)
    with_room = [
        side
        for side in counts
        if counts[side] < plan.budget and len(_history(members, side)) < cells
    ]
    return min(with_room, key=counts.__getitem__, default=None)


def _finals(plan: TuningPlan, members: Sequence[_Member]) -> list[PlannedTrial]:
    """Final trials that are no members yet; none before every side has had its budget."""
    if _next_side(plan, members) is not None:
        return []
    present = {member.trial.trial_id for member in members}
    trials: list[PlannedTrial] = []
    for side in plan.bases:
        tuned = _tuned(members, side)
        done = [member for member in tuned if member.state == "done"]
        if done and not any(member.state in OPEN for member in tuned):
            # The least loss so far is that of the weights that are kept; the earliest of equals is
            # the best.
            best = min(done, key=lambda member: min(member.losses.values()))
            trials += [
                trial
                for trial in plan.final(side, best.trial.config)
                if trial.trial_id not in present
            ]
    return trials


def _in_order(plan: TuningPlan, trials: Sequence[PlannedTrial]) -> list[PlannedTrial]:
    """A tuning's trials in plan order: stage 1, stage 2 by number, the final ones; within these,
    side by side."""
    sides = list(plan.bases)

    def position(trial: PlannedTrial) -> tuple[int, int, int]:
        assert trial.place is not None, f"{trial.name} is no trial of a tuning"
        return (
            STAGES.index(trial.place.stage),
            trial.place.number or 0,
            sides.index(trial.place.side),
        )

    return sorted(
        trials, key=position
    )  # a stable sort: equals keep the order in which they were planned


def _tuned(members: Sequence[_Member], side: str) -> list[_Member]:
    """The side's trials of stages 1 and 2 in plan order."""
    return [
        member for member in members if member.place.side == side and member.place.stage != "final"
    ]


def _searched_count(members: Sequence[_Member], side: str) -> int:
    """How many trials of stage 2 the side has."""
    return sum(member.place.stage == "stage2" for member in _tuned(members, side))


def _history(members: Sequence[_Member], side: str) -> list[Tried]:
    """The side's trials that are cells of stage 2 (one of stage 1 may be, too)."""
    return [
        Tried(cell=member.cell, state=member.state, losses=member.losses)
        for member in _tuned(members, side)
        if member.cell is not None
    ]
