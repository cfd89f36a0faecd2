"""Plan a tuning's next trials from the results in the store."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import takewhile
from operator import itemgetter

from orchestrator.plan.tuning.search import PastTrial, suggest, thresholds
from orchestrator.plan.tuning.tuning_plan import TuningPlan
from orchestrator.store import (
    OPEN,
    PlannedTrial,
    Position,
    Store,
    StudyKey,
    TrialRow,
    TrialState,
)
from search_spaces.tuning import Cell, cell_count
from trainables.config import epoch_count

JUDGED_BY = ("done", "pruned", "diverged", "running")
"""States of earlier trials that set thresholds. In others, the last epochs may be missing."""
SUGGESTION_SEED = 2021
"""Seed of every driver, so that all make the same suggestions."""
STAGES = ("stage1", "stage2", "final")


class Tuner:
    """Plans the next trials of a tuned study from its results in the store."""

    def __init__(
        self,
        plan: TuningPlan,
        key: StudyKey,
        first_trials: Sequence[PlannedTrial],
        store: Store,
        *,
        plans: bool = True,
    ) -> None:
        """If `plans` is False, add no trials and only decide early stopping."""
        self._plan, self._key, self._store, self._plans = plan, key, store, plans
        self._first_trials = {trial.trial_id: trial for trial in first_trials}
        self._cells: dict[str, Cell | None] = {}
        self._past_trials: dict[tuple[str, TrialState], PastTrial] = {}

    def start(self) -> Sequence[PlannedTrial]:
        """Register the first trials and those of an earlier search; return all in plan order.

        Some trials leave the study but stay in the store: those over budget, those outside the
        search spaces, and final trials of a config that is no longer the best.
        """
        while True:
            rows = self._rows()
            if self._register(
                [*self._first_trials.values(), *self._searched_within_budget(rows)], rows
            ):
                break
        while True:
            rows = self._rows()
            new_trials = self._finals(rows)
            if not new_trials or self._register([*rows, *new_trials], rows):
                return self._rows()

    def more(self, busy: Collection[str]) -> Sequence[PlannedTrial] | None:
        """Return the trials to run, without those whose ids are `busy`.

        Returns [] if trials may follow later, and None if none will.
        """
        while self._plans:
            rows = self._rows()
            open_trials = [row for row in rows if row.state in OPEN]
            if idle_trials := [trial for trial in open_trials if trial.trial_id not in busy]:
                return idle_trials
            new_trials = self._next(rows)
            if not new_trials:
                return [] if open_trials else None
            # The new trial may be done in another study, or another driver may have planned one
            # meanwhile, so look again.
            self._register([*rows, *new_trials], rows)
        return None

    @property
    def over(self) -> bool:
        """True if every trial has ended and none will follow."""
        if not self._plans:
            return True
        rows = self._rows()
        return not any(row.state in OPEN for row in rows) and not self._next(rows)

    def is_searched(self, trial: PlannedTrial) -> bool:
        """Return whether `stop_above` may stop the trial early.

        Such a trial is handed out only to a free worker. By then, more results set its thresholds.
        """
        return (
            trial.position is not None
            and trial.position.stage == "stage2"
            and trial.trial_id not in self._first_trials
        )

    def stop_above(self, trial: PlannedTrial) -> dict[int, float]:
        """Return the loss above which the trial is stopped, by epoch counted from 1.

        Empty if the number of epochs is unknown, or if another driver with a smaller budget removed
        the trial.
        """
        tuned_rows = _tuned_rows(self._rows(), _tuning_position(trial).side)
        earlier_rows = list(takewhile(lambda row: row.trial_id != trial.trial_id, tuned_rows))
        if len(earlier_rows) == len(tuned_rows):
            return {}
        losses = (self._past_trial(row).losses for row in earlier_rows if row.state in JUDGED_BY)
        return thresholds(epoch_count(trial.config) or 0, losses)

    def _searched_within_budget(self, rows: Sequence[TrialRow]) -> list[TrialRow]:
        searched_rows = [row for row in rows if self.is_searched(row)]
        return [
            row
            for side in self._plan.bases
            for row in [
                row
                for row in searched_rows
                if _tuning_position(row).side == side and self._cell(row) is not None
            ][: self._plan.budget]
        ]

    def _register(self, trials: Sequence[PlannedTrial], rows: Sequence[TrialRow]) -> bool:
        # Trials at equal positions stay in the order in which they were planned.
        ordered_trials = sorted(trials, key=self._position)
        if not self._store.register(
            self._key, ordered_trials, instead_of=[row.trial_id for row in rows]
        ):
            return False  # another driver was faster
        # A trial that was stopped early in another study must run in full here.
        full_ids = [trial.trial_id for trial in ordered_trials if not self.is_searched(trial)]
        self._store.reset(full_ids, states=("pruned",))
        return True

    def _position(self, trial: PlannedTrial) -> tuple[int, int, int]:
        position = _tuning_position(trial)
        return (
            STAGES.index(position.stage),
            position.number or 0,
            list(self._plan.bases).index(position.side),
        )

    def _rows(self) -> list[TrialRow]:
        return self._store.trials(self._key)

    def _cell(self, row: TrialRow) -> Cell | None:
        if row.trial_id not in self._cells:
            position = _tuning_position(row)
            is_final = position.stage == "final"
            cell = None if is_final else self._plan.searched_cell(position.side, row.config)
            self._cells[row.trial_id] = cell
        return self._cells[row.trial_id]

    def _past_trial(self, row: TrialRow) -> PastTrial:
        if (row.trial_id, row.state) in self._past_trials:
            return self._past_trials[row.trial_id, row.state]
        goal = self._plan.tuning.goal
        is_lost = row.state in ("planned", "failed")
        epochs = [] if is_lost else self._store.epochs(row.trial_id)
        losses = {
            epoch.epoch + (epochs[0].epoch == 0): goal.loss(epoch.numbers[goal.metric])
            for epoch in epochs
            if goal.metric in epoch.numbers
        }
        final = None
        if row.state == "done":
            [result] = self._store.results(self._key, [row.trial_id])
            value = result["metrics"].get(goal.metric)
            final = goal.loss(value) if isinstance(value, int | float) else None
        cell = self._cell(row) or ()
        past_trial = PastTrial(cell=cell, state=row.state, losses=losses, final=final)
        # These losses are final, unless another study resumes a pruned trial.
        if not is_lost and row.state != "running":
            self._past_trials[row.trial_id, row.state] = past_trial
        return past_trial

    def _next(self, rows: Sequence[TrialRow]) -> list[PlannedTrial]:
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
        assert cell is not None, f"{side} has no untried cell left"
        return [self._plan.searched(side, 1 + _searched_count(rows, side), cell)]

    def _next_side(self, rows: Sequence[TrialRow]) -> str | None:
        if self._plan.search == "grid":
            return None
        cells = cell_count(self._plan.tuning.stage2)
        counts = {side: _searched_count(rows, side) for side in self._plan.bases}
        open_sides = [
            side
            for side, count in counts.items()
            if count < self._plan.budget and len(self._history(rows, side)) < cells
        ]
        return min(open_sides, key=counts.__getitem__, default=None)

    def _finals(self, rows: Sequence[TrialRow]) -> list[PlannedTrial]:
        if self._next_side(rows) is not None:
            return []
        present_ids = {row.trial_id for row in rows}
        trials: list[PlannedTrial] = []
        for side in self._plan.bases:
            tuned_rows = _tuned_rows(rows, side)
            results = [
                (result, row.config)
                for row in tuned_rows
                if row.state == "done" and (result := self._past_trial(row).result) is not None
            ]
            if results and not any(row.state in OPEN for row in tuned_rows):
                # A language model keeps the weights of its least loss. Of trials with equal losses,
                # the earliest is the best.
                _, best_config = min(results, key=itemgetter(0))
                trials += self._plan.final(side, best_config)
        return [trial for trial in trials if trial.trial_id not in present_ids]

    def _history(self, rows: Sequence[TrialRow], side: str) -> list[PastTrial]:
        return [
            self._past_trial(row) for row in _tuned_rows(rows, side) if self._cell(row) is not None
        ]


def _tuning_position(trial: PlannedTrial) -> Position:
    assert trial.position is not None, f"{trial.name} is no trial of a tuning"
    return trial.position


def _tuned_rows(rows: Sequence[TrialRow], side: str) -> list[TrialRow]:
    return [
        row
        for row in rows
        if _tuning_position(row).side == side and _tuning_position(row).stage != "final"
    ]


def _searched_count(rows: Sequence[TrialRow], side: str) -> int:
    return sum(_tuning_position(row).stage == "stage2" for row in _tuned_rows(rows, side))
