"""A tuning and the store: results are read there, and the trials that follow from them are registered."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from orchestrator.plan.tuning.stages import Member, finals, in_order, next_trials, stop_above
from orchestrator.plan.tuning.tuning_plan import TuningPlan
from orchestrator.store import PlannedTrial, Store, StudyKey, TrialRow, TrialState
from search_spaces.tuning import Cell


class Tuner:
    """Gives a dispatcher the trials that nobody can name before others have ended (see `dispatcher.Source`)."""

    def __init__(
        self, plan: TuningPlan, key: StudyKey, certain: Sequence[PlannedTrial], store: Store, *, plans: bool = True
    ) -> None:
        """`certain` are the trials of the plan that no result is needed for. Without `plans` no trial is planned: the
        tuner only says which of the study's trials may be stopped early, and when."""
        self._plan, self._key, self._store, self._plans = plan, key, store, plans
        self._certain = {trial.trial_id: trial for trial in certain}
        self._cells: dict[str, Cell | None] = {}
        self._losses: dict[tuple[str, TrialState], dict[int, float]] = {}

    def start(self) -> list[PlannedTrial]:
        """Register the certain trials, with those that an earlier run has searched; returns all in plan order.

        What was searched beyond the budget, in other spaces, or as the final trials of another best is no longer of
        the study; its results stay in the store.
        """
        while True:
            rows = self._store.trials(self._key)
            if self._register([*self._certain.values(), *self._searched_within_budget(rows)], instead_of=rows):
                break
        while True:
            members = self._members()
            new = finals(self._plan, members)
            if not new or self._add(new, members):
                return [member.trial for member in self._members()]

    def _searched_within_budget(self, rows: Sequence[TrialRow]) -> list[PlannedTrial]:
        searched: dict[str, list[PlannedTrial]] = {side: [] for side in self._plan.bases}
        for row in rows:
            trial = row.planned()
            if trial.place is None or trial.place.side not in searched or not self.is_searched(trial):
                continue
            if self._searched_cell(trial.place.side, trial) is not None:
                searched[trial.place.side].append(trial)
        return [trial for trials in searched.values() for trial in trials[: self._plan.budget]]

    def more(self, busy: Collection[str]) -> list[PlannedTrial] | None:
        """Trials to run now, of which none is in `busy` (trial ids); empty while there may be some later, None at the
        end."""
        while self._plans:
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
        if not self._plans:
            return True
        members = self._members()
        return not any(member.is_open for member in members) and not next_trials(self._plan, members)

    def is_searched(self, trial: PlannedTrial) -> bool:
        """Whether the trial may be stopped early, by `stop_above`."""
        return trial.place is not None and trial.place.stage == "stage2" and trial.trial_id not in self._certain

    def stop_above(self, trial: PlannedTrial) -> dict[int, float]:
        """For a searched trial that starts now: the validation losses above which it is stopped, by epoch.

        Empty where another driver with a smaller budget has dropped the trial meanwhile.
        """
        members = self._members()
        member = next((member for member in members if member.trial.trial_id == trial.trial_id), None)
        return {} if member is None else stop_above(members, member)

    def _add(self, new: Sequence[PlannedTrial], members: Sequence[Member]) -> bool:
        present = [member.trial for member in members]
        return self._register([*present, *new], instead_of=present)

    def _register(self, trials: Sequence[PlannedTrial], *, instead_of: Sequence[PlannedTrial]) -> bool:
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
        trial = row.planned()
        assert trial.place is not None, f"{row.name} is no trial of a tuning"
        cell = None if trial.place.stage == "final" else self._searched_cell(trial.place.side, trial)
        return Member(trial=trial, place=trial.place, cell=cell, state=row.state, losses=self._valid_losses(row))

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
        if row.state != "running":  # they change no more, unless another study takes a pruned trial up again
            self._losses[row.trial_id, row.state] = losses
        return losses
