"""The road between a tuning's pure functions and the store: what is known is read there, what comes next registered."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from orchestrator.plan.tuning.stages import Member, finals, in_order, next_trials, stop_above
from orchestrator.plan.tuning.tuning_plan import TuningPlan
from orchestrator.store.records import PlannedTrial, StudyKey, TrialRow, TrialState
from orchestrator.store.store import Store
from search_spaces.tuning import Cell

FINAL_STATES: tuple[TrialState, ...] = ("done", "pruned", "diverged")
"""Their epochs change no more while this driver runs, but where another study takes a pruned trial up again."""


class Tuner:
    """Gives a dispatcher the trials that nobody knows before others have ended (see `dispatch.Source`)."""

    def __init__(
        self, plan: TuningPlan, key: StudyKey, known: Sequence[PlannedTrial], store: Store, *, asks: bool = True
    ) -> None:
        """`known`: the trials of the plan that no result is needed for. Without `asks` nothing is planned: it only
        knows which of the study's trials may be stopped early, and when."""
        self._plan, self._key, self._store, self._asks = plan, key, store, asks
        self._known = {trial.trial_id: trial for trial in known}
        self._cells: dict[str, Cell | None] = {}
        self._losses: dict[tuple[str, TrialState], dict[int, float]] = {}

    def start(self) -> list[PlannedTrial]:
        """Register what is known, with the searched trials that an earlier run asked for; returns them in plan order.

        What was asked for beyond the budget, in other spaces, or as the final trials of another best is no longer of
        the study; its results stay in the store.
        """
        while True:
            rows = self._store.trials(self._key)
            if self._register([*self._known.values(), *self._asked_within_budget(rows)], instead_of=rows):
                break
        while True:
            members = self._members()
            new = finals(self._plan, members)
            if not new or self._add(new, members):
                return [member.trial for member in self._members()]

    def _asked_within_budget(self, rows: Sequence[TrialRow]) -> list[PlannedTrial]:
        asked: dict[str, list[PlannedTrial]] = {side: [] for side in self._plan.bases}
        for row in rows:
            place = row.place
            if place is None or place.side not in asked or not self.is_searched(row.planned()):
                continue
            if self._cell_of(place.side, row) is not None:
                asked[place.side].append(row.planned())
        return [trial for trials in asked.values() for trial in trials[: self._plan.budget]]

    def more(self, busy: Collection[str]) -> list[PlannedTrial] | None:
        """Trials to run now, of which none is in `busy` (trial ids); empty while there may be some later, None at the
        end."""
        while self._asks:
            members = self._members()
            idle = [member.trial for member in members if member.is_open and member.trial.trial_id not in busy]
            if idle:
                return idle
            new = next_trials(self._plan, members)
            if not new:
                return [] if any(member.is_open for member in members) else None
            # One that another study has run already costs nothing, and another driver may have planned its own
            # meanwhile: the loop looks again.
            self._add(new, members)
        return None

    @property
    def over(self) -> bool:
        """True once every trial has ended and no other one follows."""
        if not self._asks:
            return True
        members = self._members()
        return not any(member.is_open for member in members) and not next_trials(self._plan, members)

    def is_searched(self, trial: PlannedTrial) -> bool:
        """Whether the trial may be stopped early, by `stop_above`."""
        return trial.place is not None and trial.place.stage == "stage2" and trial.trial_id not in self._known

    def stop_above(self, trial: PlannedTrial) -> dict[int, float]:
        """For a searched trial that starts now: the validation losses above which it is stopped, by epoch.

        Empty where another driver with a smaller budget has dropped the trial meanwhile.
        """
        members = self._members()
        mine = next((member for member in members if member.trial.trial_id == trial.trial_id), None)
        return {} if mine is None else stop_above(members, mine)

    def _add(self, new: Sequence[PlannedTrial], members: Sequence[Member]) -> bool:
        known = [member.trial for member in members]
        return self._register([*known, *new], instead_of=known)

    def _register(
        self, trials: Sequence[PlannedTrial], *, instead_of: Sequence[PlannedTrial] | Sequence[TrialRow]
    ) -> bool:
        """Make the study's members these; those that must run in full and were once stopped early are planned again.

        Returns False, with nothing done, where the members are no longer `instead_of`: another driver of this study
        was faster.
        """
        ordered = in_order(self._plan, trials)
        if not self._store.register(self._key, ordered, instead_of=[trial.trial_id for trial in instead_of]):
            return False
        whole = [trial.trial_id for trial in ordered if not self.is_searched(trial)]
        self._store.reset(whole, states=("pruned",))
        return True

    def _members(self) -> list[Member]:
        return [self._member(row) for row in self._store.trials(self._key)]

    def _member(self, row: TrialRow) -> Member:
        assert row.place is not None, f"{row.name} is no trial of a tuning"
        cell = None if row.place.stage == "final" else self._cell_of(row.place.side, row)
        return Member(trial=row.planned(), place=row.place, cell=cell, state=row.state, losses=self._losses_of(row))

    def _cell_of(self, side: str, row: TrialRow) -> Cell | None:
        if row.trial_id not in self._cells:
            self._cells[row.trial_id] = self._plan.searched_cell(side, row.config)
        return self._cells[row.trial_id]

    def _losses_of(self, row: TrialRow) -> dict[int, float]:
        if row.state in ("planned", "failed"):
            return {}
        known = self._losses.get((row.trial_id, row.state))
        if known is None:
            known = {epoch.epoch: epoch.valid_loss for epoch in self._store.epochs(row.trial_id)}
            if row.state in FINAL_STATES:
                self._losses[row.trial_id, row.state] = known
        return known
