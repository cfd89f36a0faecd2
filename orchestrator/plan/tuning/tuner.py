"""What comes next in a tuning, by its plan and the results in the store, where what follows is
registered."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from orchestrator.plan.tuning.search import Tried, suggest, thresholds
from orchestrator.plan.tuning.tuning_plan import TuningPlan
from orchestrator.store import OPEN, Place, PlannedTrial, Store, StudyKey, TrialRow, TrialState
from search_spaces.tuning import Cell, cell_count

JUDGED_BY = ("done", "pruned", "diverged", "running")
"""Earlier trials in these states set the thresholds. How far the losses of others are recorded is
chance: a process that died may not have reported its last epochs."""
SUGGESTION_SEED = 2021
"""Seed of every search: with the same results it asks for the same cells, whoever runs it."""
STAGES = ("stage1", "stage2", "final")


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
        trial is planned: the tuner only decides which of the study's trials may be stopped early,
        and when."""
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
            rows = self._rows()
            if self._register([*self._certain.values(), *self._searched_within_budget(rows)], rows):
                break
        while True:
            rows = self._rows()
            new = self._finals(rows)
            if not new or self._register([*rows, *new], rows):
                return [row.planned() for row in self._rows()]

    def more(self, busy: Collection[str]) -> list[PlannedTrial] | None:
        """Return trials to run now, of which none is in `busy` (trial ids); empty if there may be
        some later, None at the end."""
        while self._plans:
            rows = self._rows()
            waiting = [row.planned() for row in rows if row.state in OPEN]
            if idle := [trial for trial in waiting if trial.trial_id not in busy]:
                return idle
            new = self._next(rows)
            if not new:
                return [] if waiting else None
            # One that another study has run already costs nothing, and another driver may have
            # planned its own meanwhile: the loop looks again.
            self._register([*rows, *new], rows)
        return None

    @property
    def over(self) -> bool:
        """True once every trial has ended and no other one follows."""
        if not self._plans:
            return True
        rows = self._rows()
        return not any(row.state in OPEN for row in rows) and not self._next(rows)

    def is_searched(self, trial: PlannedTrial) -> bool:
        """Whether the trial may be stopped early, by `stop_above`. Such a trial is taken up by a
        free worker, never in advance, so that as much as can be is known before."""
        return (
            trial.place is not None
            and trial.place.stage == "stage2"
            and trial.trial_id not in self._certain
        )

    def stop_above(self, trial: PlannedTrial) -> dict[int, float]:
        """For a searched trial that starts now, return the validation losses above which it is
        stopped, by epoch, from its side's earlier trials.

        Empty if another driver with a smaller budget has dropped the trial meanwhile.
        """
        tuned = _tuned(self._rows(), _place(trial).side)
        ids = [row.trial_id for row in tuned]
        if trial.trial_id not in ids:
            return {}
        earlier = [row for row in tuned[: ids.index(trial.trial_id)] if row.state in JUDGED_BY]
        return thresholds(trial.config["training"]["epochs"], map(self._valid_losses, earlier))

    def _searched_within_budget(self, rows: Sequence[TrialRow]) -> list[TrialRow]:
        searched = [row for row in rows if self.is_searched(row)]
        return [
            row
            for side in self._plan.bases
            for row in [
                row for row in searched if _place(row).side == side and self._cell(row) is not None
            ][: self._plan.budget]
        ]

    def _register(self, trials: Sequence[PlannedTrial], rows: Sequence[TrialRow]) -> bool:
        """Make the study's members these in place of `rows`; those that must run in full and were
        once stopped early are planned again.

        Returns False, with nothing done, if another driver of this study was faster."""
        ordered = sorted(trials, key=self._position)  # equals keep the order of their planning
        if not self._store.register(self._key, ordered, instead_of=[row.trial_id for row in rows]):
            return False
        whole = [trial.trial_id for trial in ordered if not self.is_searched(trial)]
        self._store.reset(whole, states=("pruned",))
        return True

    def _position(self, trial: PlannedTrial) -> tuple[int, int, int]:
        """Stage 1, stage 2 by number, the final trials; within these, side by side."""
        place = _place(trial)
        return (
            STAGES.index(place.stage),
            place.number or 0,
            list(self._plan.bases).index(place.side),
        )

    def _rows(self) -> list[TrialRow]:
        """The study's trials in plan order."""
        return self._store.trials(self._key)

    def _cell(self, row: TrialRow) -> Cell | None:
        """Return the cell of stage 2 that the trial is of; None if it is a final one or of none."""
        if row.trial_id not in self._cells:
            place = _place(row)
            final = place.stage == "final"
            cell = None if final else self._plan.searched_cell(place.side, row.config)
            self._cells[row.trial_id] = cell
        return self._cells[row.trial_id]

    def _valid_losses(self, row: TrialRow) -> dict[int, float]:
        """Return the validation loss in nats per token after each epoch."""
        if row.state in ("planned", "failed"):
            return {}
        if (row.trial_id, row.state) in self._losses:
            return self._losses[row.trial_id, row.state]
        losses = {epoch.epoch: epoch.valid_loss for epoch in self._store.epochs(row.trial_id)}
        # They change no more, unless another study takes a pruned trial up again.
        if row.state != "running":
            self._losses[row.trial_id, row.state] = losses
        return losses

    def _next(self, rows: Sequence[TrialRow]) -> list[PlannedTrial]:
        """Return what to plan next: one trial of stage 2, or else the final trials of sides whose
        stages are over, or nothing."""
        side = self._next_side(rows)
        if side is None:
            return self._finals(rows)
        assert self._plan.search != "grid", "all trials of a grid are planned from the start"
        cell = suggest(
            self._plan.tuning.stage2,
            method=self._plan.search,
            seed=SUGGESTION_SEED,
            history=self._history(rows, side),
        )
        assert cell is not None, f"{side} was to get another cell after the last one"
        return [self._plan.searched(side, 1 + _searched_count(rows, side), cell)]

    def _next_side(self, rows: Sequence[TrialRow]) -> str | None:
        """Return the side with the fewest trials of stage 2, so that all have equally many at any
        time; None once all have had their budget, or every cell. No side's choice depends on
        another's results."""
        if self._plan.search == "grid":
            return None
        cells = cell_count(self._plan.tuning.stage2)
        counts = {side: _searched_count(rows, side) for side in self._plan.bases}
        with_room = [
            side
            for side, count in counts.items()
            if count < self._plan.budget and len(self._history(rows, side)) < cells
        ]
        return min(with_room, key=counts.__getitem__, default=None)

    def _finals(self, rows: Sequence[TrialRow]) -> list[PlannedTrial]:
        """Return final trials that are no members yet; none before every side has had its
        budget."""
        if self._next_side(rows) is not None:
            return []
        present = {row.trial_id for row in rows}
        trials: list[PlannedTrial] = []
        for side in self._plan.bases:
            tuned = _tuned(rows, side)
            done = [row for row in tuned if row.state == "done"]
            if done and not any(row.state in OPEN for row in tuned):
                # The least loss so far is that of the weights that are kept; the earliest of
                # equals is the best.
                best = min(done, key=lambda row: min(self._valid_losses(row).values()))
                trials += self._plan.final(side, best.config)
        return [trial for trial in trials if trial.trial_id not in present]

    def _history(self, rows: Sequence[TrialRow], side: str) -> list[Tried]:
        """Return the side's trials that are cells of stage 2; one of stage 1 may be, too."""
        return [
            Tried(cell=cell, state=row.state, losses=self._valid_losses(row))
            for row in _tuned(rows, side)
            if (cell := self._cell(row)) is not None
        ]


def _place(trial: PlannedTrial) -> Place:
    assert trial.place is not None, f"{trial.name} is no trial of a tuning"
    return trial.place


def _tuned(rows: Sequence[TrialRow], side: str) -> list[TrialRow]:
    """Return the side's trials of stages 1 and 2 in plan order."""
    return [row for row in rows if _place(row).side == side and _place(row).stage != "final"]


def _searched_count(rows: Sequence[TrialRow], side: str) -> int:
    return sum(_place(row).stage == "stage2" for row in _tuned(rows, side))
