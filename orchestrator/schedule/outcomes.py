"""Collect trial outcomes from workers' reports, files and other drivers, and record them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from orchestrator.guard import trial_ended
from orchestrator.schedule.attempts import Attempts
from orchestrator.schedule.failures import Failures
from orchestrator.schedule.packs import Flight
from orchestrator.schedule.recording import Recorder, wait_for_storage
from orchestrator.schedule.study_work import StudyWork
from orchestrator.schedule.trial_table import State, TrialTable
from orchestrator.store import PlannedTrial
from orchestrator.worker import Ending, EndingKind, TrialEvent
from trainables.config import epoch_count
from trainables.errors import UserError
from trainables.trial_folder import DamagedFileError, Epoch, TrialOutcome

# The sweep stops after this number of successive workers that start no trial. The second limit
# applies if memory is short.
MAX_START_FAILURES, MAX_MEMORY_FAILURES = 3, 20


class Outcomes:
    """Records trial outcomes in the store and in this driver's table of trials."""

    def __init__(self, work: StudyWork, table: TrialTable, attempts: Attempts) -> None:
        self._work, self._table, self._attempts = work, table, attempts
        self._listener = work.listener
        self._recorder = Recorder(work.store, work.options.storage, work.run_id, table.attempts)
        self._start_failures = 0
        self.failures = Failures(work.options.max_failures)
        self.measurement_failures: dict[str, str] = {}

    def process_events(self, flight: Flight, events: Iterable[TrialEvent]) -> list[PlannedTrial]:
        """Process events from the pack's worker; return the trials that must run again.

        Raises UserError if the worker can no longer write files, or if too many trials failed.
        """
        events = list(events)
        self._record_starts(events, flight.machine)
        epochs: dict[str, list[Epoch]] = {}
        retries = []
        for event in events:
            if event.halt is not None:
                raise UserError(f"{event.halt}.")
            if event.note is not None:
                self._listener.note(f"{flight.open_trials[event.trial_id].name}: {event.note}.")
            elif event.is_busy:
                self._give_way(flight.open_trials.pop(event.trial_id))
            elif event.outcome is not None:
                retries += self._record(flight, event.outcome)
            elif event.epoch is not None:
                epochs.setdefault(event.trial_id, []).append(event.epoch)
                self._listener.epoch(event.trial_id, event.epoch)
            else:
                flight.started = True
                self._start_failures = 0
                trial = flight.open_trials[event.trial_id]
                self._table.move([trial], State.RUNNING)
                self._listener.started(event.trial_id, trial.name, epoch_count(trial.config))
        running_epochs = {
            trial_id: rows for trial_id, rows in epochs.items() if trial_id in flight.open_trials
        }
        if running_epochs:
            self._work.store.record_epochs(running_epochs, attempts=self._table.attempts)
        return retries

    def end_pack(self, flight: Flight, ending: Ending) -> list[PlannedTrial]:
        """Process the end of a pack; return the trials that get another attempt.

        Trials that did not start stay in `flight.open_trials`. Raises UserError if workers keep
        ending before they start a trial, or if too many trials failed.
        """
        wait_for_storage(lambda: self.recover(flight))
        is_unfit = ending.kind is EndingKind.MACHINE_UNFIT
        if not flight.open_trials or flight.given_up or is_unfit:
            return []
        running_ids = self._table.trials(State.RUNNING).keys() & flight.open_trials.keys()
        running_trials = [
            trial for trial_id, trial in flight.open_trials.items() if trial_id in running_ids
        ]
        if len(running_trials) > 1:
            return self._halve(flight, running_trials, ending)
        if flight.started and (ending.died or not flight.has_outcomes):
            return self._retry_or_fail(
                flight.open_trials.pop(next(iter(flight.open_trials))), ending
            )
        if not (flight.started or flight.has_outcomes or ending.kind is EndingKind.MACHINE_LEFT):
            self._count_start_failure(ending)
        return []

    def _halve(
        self, flight: Flight, running_trials: Sequence[PlannedTrial], ending: Ending
    ) -> list[PlannedTrial]:
        consequence = "they resume from their last checkpoints"
        if ending.kind is not EndingKind.MACHINE_LEFT:
            self._attempts.halve([trial.trial_id for trial in running_trials])
            consequence += ", in smaller groups"
        self._listener.note(
            f"{len(running_trials)} trials in one process: {ending.cause}; {consequence}."
        )
        for trial in running_trials:
            self._end_attempt(trial, ending)
            del flight.open_trials[trial.trial_id]
        self._table.move(running_trials, State.RETRIED)
        return list(running_trials)

    def _end_attempt(self, trial: PlannedTrial, ending: Ending) -> None:
        claim = self._table.attempts[trial.trial_id]
        self._work.store.end_attempt(trial.trial_id, claim=claim, cause=ending.cause)

    def recover(self, flight: Flight) -> None:
        """Record results that the worker wrote to files but did not report."""
        if flight.pack.unmeasured:
            for outcome in self._recorder.unreported_measurements(
                list(flight.open_trials), flight.pack.unmeasured
            ):
                self._end(flight.open_trials.pop(outcome.trial_id), outcome)
            return
        open_trials, is_searched = list(flight.open_trials.values()), bool(flight.pack.stop_above)
        for outcome, is_recorded in self._recorder.recover(
            open_trials, note=self._listener.note, may_be_pruned=lambda _: is_searched
        ):
            self._end_if_recorded(flight.open_trials.pop(outcome.trial_id), outcome, is_recorded)

    def _give_way(self, trial: PlannedTrial) -> None:
        if not self._table.busy_ids:
            self._listener.note(f"{trial.name}: another worker runs it.")
        self._table.give_way(trial)

    def end_elsewhere(self) -> None:
        """Process trials that other drivers, or workers without a driver, ended."""
        elsewhere_trials = self._table.trials(State.ELSEWHERE)
        busy_trials = [
            trial
            for trial_id, trial in elsewhere_trials.items()
            if trial_id in self._table.busy_ids
        ]
        self._recorder.recover(busy_trials, note=self._listener.note)
        for outcome in self._table.elsewhere_outcomes():
            self._end(elsewhere_trials[outcome.trial_id], outcome)

    def _record_starts(self, events: Sequence[TrialEvent], machine: str) -> None:
        attempts = self._table.attempts
        hosts = {
            event.trial_id: event.host
            for event in events
            if event.host is not None and event.trial_id in attempts
        }
        self.failures.places |= {trial_id: (machine, host) for trial_id, host in hosts.items()}
        if hosts:
            self._work.store.record_starts(hosts, attempts=attempts)

    def _record(self, flight: Flight, outcome: TrialOutcome) -> list[PlannedTrial]:
        trial_id, unmeasured = outcome.trial_id, flight.pack.unmeasured
        if unmeasured:
            _, problems = wait_for_storage(
                lambda: self._recorder.measurements({trial_id: unmeasured})
            )
            if problems and outcome.cause is None:
                outcome = TrialOutcome(trial_id=trial_id, state="failed", cause=problems[trial_id])
            self._end(flight.open_trials.pop(trial_id), outcome)
            return []
        try:
            is_recorded = self._recorder.outcome(outcome)
        except DamagedFileError as error:
            damage = Ending(EndingKind.ERROR, str(error))
            return self._retry_or_fail(flight.open_trials.pop(trial_id), damage, "it runs again")
        self._end_if_recorded(flight.open_trials.pop(trial_id), outcome, is_recorded)
        return []

    def _retry_or_fail(
        self,
        trial: PlannedTrial,
        ending: Ending,
        consequence: str = "it resumes from its last checkpoint",
    ) -> list[PlannedTrial]:
        is_measurement = trial.trial_id in self._work.unmeasured
        failure_cause = self._attempts.count_death(trial.trial_id, ending)
        if failure_cause is None:
            consequence = "it is measured again" if is_measurement else consequence
            if ending.short_of_memory:
                consequence += ", alone"
            self._listener.note(f"{trial.name}: {ending.cause}; {consequence}.")
            if not is_measurement:
                self._end_attempt(trial, ending)
            self._table.move([trial], State.RETRIED)
            return [trial]
        outcome = TrialOutcome(trial_id=trial.trial_id, state="failed", cause=failure_cause)
        is_recorded = is_measurement or self._recorder.outcome(outcome)
        self._end_if_recorded(trial, outcome, is_recorded)
        return []

    def _count_start_failure(self, ending: Ending) -> None:
        self._start_failures += 1
        limit = MAX_START_FAILURES
        fix = (
            "Check that every machine has this project, its packages and the same Ray token (or "
            "RAY_AUTH_MODE=disabled)"
        )
        if ending.short_of_memory:  # another program may use it now, and free it later
            limit, fix = MAX_MEMORY_FAILURES, "Free memory on that machine"
            if self._start_failures == 1:
                self._listener.note(
                    f"A worker ended before it started a trial: {ending.cause}; trying again."
                )
        if self._start_failures >= limit:
            raise UserError(
                f"{self._start_failures} workers in a row ended before they started a trial "
                f"({ending.cause}). {fix}, and run the same command again."
            )

    def _end_if_recorded(
        self, trial: PlannedTrial, outcome: TrialOutcome, is_recorded: bool
    ) -> None:
        if is_recorded:
            self._end(trial, outcome)
        else:  # another driver has claimed or ended the trial
            self._table.move([trial], State.ELSEWHERE)
            self.end_elsewhere()

    def _end(self, trial: PlannedTrial, outcome: TrialOutcome) -> None:
        self._table.move([trial], State.ENDED)
        trial_ended()
        if trial.trial_id in self._work.unmeasured and outcome.cause is not None:
            self.measurement_failures[trial.trial_id] = outcome.cause
        self._listener.finished(trial.name, outcome)
        self.failures.count(outcome)
