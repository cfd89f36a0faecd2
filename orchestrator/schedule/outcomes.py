"""Trial outcomes, from worker reports, files, pack endings and other drivers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from orchestrator.guard import trial_ended
from orchestrator.schedule.attempts import Attempts
from orchestrator.schedule.packs import Flight
from orchestrator.schedule.recording import Recorder, wait_for_storage
from orchestrator.schedule.study_work import StudyWork
from orchestrator.schedule.trial_table import State, TrialTable
from orchestrator.store import PlannedTrial
from orchestrator.worker import Ending, EndingKind, TrialEvent
from trainables.errors import UserError
from trainables.trial_folder import DamagedFileError, EpochMetrics, TrialOutcome

MOST_START_FAILURES, MOST_MEMORY_FAILURES = 3, 20
"""Limits on consecutive workers that end before they start a trial; the second if memory is
short."""


class Outcomes:
    """Records outcomes in the store and in this driver's trial table."""

    def __init__(self, work: StudyWork, table: TrialTable, attempts: Attempts) -> None:
        self._work, self._table, self._attempts = work, table, attempts
        self._listener = work.listener
        self._recorder = Recorder(work.store, work.options.storage, work.run_id, table.attempts)
        self._start_failures = 0
        self._refusals: set[str] = set()
        self.not_measured: dict[str, str] = {}
        """Reasons, by trial id."""

    def events(self, flight: Flight, events: Iterable[TrialEvent]) -> list[PlannedTrial]:
        """Process events from the pack's worker; return the trials that must run again.

        Raises UserError if the worker can write no more files."""
        events = list(events)
        self._record_starts(events)
        epochs: dict[str, list[EpochMetrics]] = {}
        retried = []
        for event in events:
            if event.halt is not None:
                raise UserError(f"{event.halt}.")
            if event.note is not None:
                self._listener.note(f"{flight.left[event.trial_id].name}: {event.note}.")
            elif event.outcome is not None:
                retried += self._record(flight, event.outcome)
            elif event.epoch is not None:
                epochs.setdefault(event.trial_id, []).append(event.epoch)
                self._listener.epoch(event.trial_id, event.epoch)
            else:
                flight.started = True
                self._start_failures = 0
                trial = flight.left[event.trial_id]
                self._table.move([trial], State.RUNNING)
                epoch_count = trial.config.get("training", {}).get("epochs")
                self._listener.started(event.trial_id, trial.name, epoch_count)
        running = {trial_id: rows for trial_id, rows in epochs.items() if trial_id in flight.left}
        if running:
            self._work.store.record_epochs(running, attempts=self._table.attempts)
        return retried

    def ended(self, flight: Flight, ending: Ending) -> list[PlannedTrial]:
        """Process the end of a pack; return the trials that get another attempt.

        Trials that remain in `flight.left` were not started. Raises UserError if workers keep
        ending before they start a trial."""
        wait_for_storage(lambda: self.recover(flight))
        unfit = ending.kind is EndingKind.MACHINE_UNFIT
        if unfit and ending.cause not in self._refusals:
            self._refusals.add(ending.cause)
            self._listener.note(ending.cause)
        if not flight.left or flight.given_up or unfit:
            return []
        running_ids = self._table.trials(State.RUNNING).keys() & flight.left.keys()
        running = [trial for trial_id, trial in flight.left.items() if trial_id in running_ids]
        if len(running) > 1:
            return self._halve(flight, running, ending)
        if flight.started and (ending.died or not flight.some_ended):
            return self._retry_or_fail(flight.left.pop(next(iter(flight.left))), ending)
        if not (flight.started or flight.some_ended or ending.kind is EndingKind.MACHINE_LEFT):
            self._count_start_failure(ending)
        return []

    def _halve(
        self, flight: Flight, running: Sequence[PlannedTrial], ending: Ending
    ) -> list[PlannedTrial]:
        what_next = "they go on from their last checkpoints"
        if ending.kind is not EndingKind.MACHINE_LEFT:
            self._attempts.halve([trial.trial_id for trial in running])
            what_next += ", fewer together"
        self._listener.note(
            f"{len(running)} trials that ran in one process: {ending.cause}; {what_next}."
        )
        for trial in running:
            self._end_attempt(trial, ending)
            del flight.left[trial.trial_id]
        self._table.move(running, State.RETRIED)
        return list(running)

    def _end_attempt(self, trial: PlannedTrial, ending: Ending) -> None:
        claim = self._table.attempts[trial.trial_id]
        self._work.store.end_attempt(trial.trial_id, claim=claim, cause=ending.cause)

    def recover(self, flight: Flight) -> None:
        """Record what the worker made durable but did not report."""
        if flight.pack.lacking:
            for outcome in self._recorder.unreported_measurements(
                list(flight.left), flight.pack.lacking
            ):
                self._end(flight.left.pop(outcome.trial_id), outcome)
            return
        left, searched = list(flight.left.values()), bool(flight.pack.stop_above)
        for outcome, taken in self._recorder.recover(
            left, note=self._listener.note, may_be_pruned=lambda _: searched
        ):
            self._end_if_taken(flight.left.pop(outcome.trial_id), outcome, taken)

    def ended_elsewhere(self) -> None:
        """Process trials that other drivers have ended."""
        elsewhere = self._table.trials(State.ELSEWHERE)
        for outcome in self._table.ended_elsewhere():
            self._end(elsewhere[outcome.trial_id], outcome)

    def _record_starts(self, events: Sequence[TrialEvent]) -> None:
        attempts = self._table.attempts
        places = {
            event.trial_id: event.place
            for event in events
            if event.place is not None and event.trial_id in attempts
        }
        if places:
            self._work.store.record_starts(places, attempts=attempts)

    def _record(self, flight: Flight, outcome: TrialOutcome) -> list[PlannedTrial]:
        trial_id, lacking = outcome.trial_id, flight.pack.lacking
        if lacking:
            _, problems = wait_for_storage(lambda: self._recorder.measurements({trial_id: lacking}))
            if problems and outcome.cause is None:
                outcome = TrialOutcome(trial_id=trial_id, state="failed", cause=problems[trial_id])
            self._end(flight.left.pop(trial_id), outcome)
            return []
        try:
            taken = self._recorder.outcome(outcome)
        except DamagedFileError as error:
            damage = Ending(EndingKind.ERROR, str(error))
            return self._retry_or_fail(flight.left.pop(trial_id), damage, "it runs again")
        self._end_if_taken(flight.left.pop(trial_id), outcome, taken)
        return []

    def _retry_or_fail(
        self,
        trial: PlannedTrial,
        ending: Ending,
        what_next: str = "it goes on from its last checkpoint",
    ) -> list[PlannedTrial]:
        measured = trial.trial_id in self._work.lacking
        failure = self._attempts.failure(trial.trial_id, ending)
        if failure is None:
            what_next = "it is measured again" if measured else what_next
            if ending.short_of_memory:
                what_next += ", alone"
            self._listener.note(f"{trial.name}: {ending.cause}; {what_next}.")
            if not measured:
                self._end_attempt(trial, ending)
            self._table.move([trial], State.RETRIED)
            return [trial]
        outcome = TrialOutcome(trial_id=trial.trial_id, state="failed", cause=failure)
        taken = measured or self._recorder.outcome(outcome)
        self._end_if_taken(trial, outcome, taken)
        return []

    def _count_start_failure(self, ending: Ending) -> None:
        self._start_failures += 1
        fix = (
            "check that every machine has this project, its packages and the same Ray token (or "
            "RAY_AUTH_MODE=disabled)"
        )
        if ending.short_of_memory:  # another program used it, and may free it
            fix = "free memory on that machine"
            if self._start_failures == 1:
                self._listener.note(
                    f"A worker ended before it started a trial: {ending.cause}; trying again."
                )
        if self._start_failures >= (
            MOST_MEMORY_FAILURES if ending.short_of_memory else MOST_START_FAILURES
        ):
            raise UserError(
                f"{self._start_failures} workers in a row ended before they started a trial "
                f"({ending.cause}): {fix}, then run the same command again."
            )

    def _end_if_taken(self, trial: PlannedTrial, outcome: TrialOutcome, taken: bool) -> None:
        """The store refuses the outcome if another driver has claimed or ended the trial."""
        if taken:
            self._end(trial, outcome)
        else:
            self._table.move([trial], State.ELSEWHERE)
            self.ended_elsewhere()

    def _end(self, trial: PlannedTrial, outcome: TrialOutcome) -> None:
        self._table.move([trial], State.ENDED)
        trial_ended()
        self._attempts.ended(trial.trial_id)
        if trial.trial_id in self._work.lacking and outcome.cause is not None:
            self.not_measured[trial.trial_id] = outcome.cause
        self._listener.finished(trial.trial_id, outcome)
