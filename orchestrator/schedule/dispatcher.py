"""Which pack runs next, and what becomes of trials when a pack ends, well or badly. Knows nothing of Ray.

Trials are claimed pack by pack, when a worker is about to be free: two drivers that are given the same study share it.
Trials that are done and lack measurements are handed out unclaimed: whoever takes one first, nothing is overwritten.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from orchestrator.guard import trial_ended
from orchestrator.schedule.attempts import Attempts
from orchestrator.schedule.packs import PackQueue, pack
from orchestrator.schedule.recording import Recorder
from orchestrator.schedule.study_work import POLL_S, StudyWork
from orchestrator.schedule.trial_table import State, TrialTable
from orchestrator.storage import BucketError, patiently
from orchestrator.store import PlannedTrial, expire_dead_owners
from orchestrator.worker import Ending, EndingKind, Pack, TrialEvent
from trainables.errors import UserError
from trainables.trial_folder import DamagedFileError, EpochMetrics, TrialOutcome

MOST_START_FAILURES = 3
"""So many workers in a row that end before they take up a trial end the sweep."""


@dataclass
class _Flight:
    """A pack that is with a worker, or on its way to one."""

    pack: Pack
    left: dict[str, PlannedTrial]
    """The trials without an outcome, in the order in which the worker takes them up."""
    started: bool = False
    given_up: bool = False
    """It is being ended: what is left of it goes back into the queue."""

    @property
    def some_ended(self) -> bool:
        """Whether a trial of it has come to its end."""
        return len(self.left) < len(self.pack.trials)


class Dispatcher:
    """Hands out packs and takes in what they report. Every trial ends in exactly one of: recorded, failed, released."""

    def __init__(self, trials: Sequence[PlannedTrial], work: StudyWork, owner: str, *, slots: int) -> None:
        """`owner` is this driver's name in the store; `slots` packs fit on the machines at first."""
        self._work = work
        self._listener, self._source = work.listener, work.source
        self.attempts = Attempts(work.options.max_attempts)
        self.resize(slots)
        self._next_poll_s = self._next_ask_s = 0.0
        self._table = TrialTable(work.store, owner, unclaimed=work.lacking)
        self._recorder = Recorder(work.store, work.options, work.run_id, self._table.attempts)
        self._queue = PackQueue()
        self._flights: dict[str, _Flight] = {}
        self._start_failures = 0
        self._stop_requests: set[str] = set()
        self._refusals: set[str] = set()
        self.not_measured: dict[str, str] = {}
        """By trial id, why a trial that lacked measurements did not get them."""
        self._wait(trials)

    def resize(self, slots: int) -> None:
        """So many packs fit on the machines that there are now; `slots` says it."""
        self.slots, limit = slots, self._work.options.max_concurrent
        # One pack waits ready for the next free worker, except where that would exceed the user's own limit.
        self._workers = slots if limit is None else min(slots, limit)
        self._most_flights = slots + 1 if limit is None or limit > slots else limit

    def add(self, trials: Sequence[PlannedTrial]) -> None:
        """Run these trials too, but for those that are known already."""
        new = [trial for trial in trials if trial.trial_id not in self._table]
        if new:
            self._wait(new)
            self._listener.added(len(new))

    def stop(self, trial_ids: Collection[str]) -> None:
        """Run these trials no more: they are given back, as they are, and are left to a later run."""
        self._stop_requests |= set(trial_ids)
        elsewhere = self._table.trials(State.ELSEWHERE)
        self._release([trial for trial_id, trial in elsewhere.items() if trial_id in self._stop_requests])

    def give_up(self, nowhere: Collection[str] = ()) -> list[str]:
        """The packs, of those not named before, that have to be ended: their worker is at a trial that is to stop, or
        they have none, and are among those for which there is no machine any more."""
        to_stop = self._stop_requests & self._table.trials(State.RUNNING).keys()
        keys = [key for key, flight in self._flights.items() if flight.left.keys() & to_stop]
        keys += [key for key in nowhere if not self._flights[key].started]
        new = [key for key in keys if not self._flights[key].given_up]
        for key in new:
            self._flights[key].given_up = True
        return new

    @property
    def finished(self) -> bool:
        """True when nothing is left to hand out and nothing can come back."""
        return not (self._queue or self._flights or self._table.any(State.ELSEWHERE) or self._source)

    @property
    def claimed(self) -> list[PlannedTrial]:
        """The trials that are ours by the store: claimed, and neither ended nor given back."""
        return self._table.claimed

    @property
    def waits_for_a_start(self) -> bool:
        """Whether packs are on their way to workers, and no worker has taken one up."""
        return bool(self._flights) and not any(flight.started for flight in self._flights.values())

    def show(self) -> None:
        """Show the listener the packs and trials that are with workers."""
        pack_sizes = [len(flight.pack.trials) for flight in self._flights.values()]
        self._listener.refresh(pack_sizes, set(self._table.trials(State.RUNNING)))

    def trial_at(self, key: str) -> str | None:
        """The id of the trial that the pack's worker is at, by what it has told; None after its last one."""
        return next(iter(self._flights[key].left), None)

    def next_pack(self, key: str) -> Pack | None:
        """Claim and hand out the next pack under the name `key`; None while there is nothing to hand out."""
        if len(self._flights) >= self._most_flights:
            return None
        if not self._queue.shared:
            self._take_over()
        if not self._queue.shared:
            self._ask_source()
        ready = self._queue.ready([flight.pack for flight in self._flights.values()])
        while ready:
            searched = any(map(self._is_searched, ready[0].trials))
            if searched and len(self._flights) >= self._workers:
                return None
            queued = ready.popleft()
            trials = self._claim(self._without_stopped(queued.trials))
            if trials:
                rule = self._source.stop_above(trials[0]) if self._source and searched else None
                handed_out = replace(queued, trials=tuple(trials), stop_above=rule)
                left = {trial.trial_id: trial for trial in trials}
                self._flights[key] = _Flight(handed_out, left)
                self._table.move(trials, State.HANDED_OUT)
                return handed_out
        return None

    def events(self, key: str, events: Iterable[TrialEvent]) -> None:
        """Take in what the pack's worker reports. Raises UserError where its disk takes nothing more."""
        flight = self._flights[key]
        epochs: dict[str, list[EpochMetrics]] = {}
        for event in events:
            if event.halt is not None:
                raise UserError(f"{event.halt}.")
            if event.note is not None:
                self._listener.note(f"{flight.left[event.trial_id].name}: {event.note}.")
            elif event.outcome is not None:
                self._record(flight, event.outcome)
            elif event.epoch is not None:
                epochs.setdefault(event.trial_id, []).append(event.epoch)
                self._listener.epoch(event.trial_id, event.epoch)
            else:
                flight.started = True
                self._start_failures = 0
                self._table.move([flight.left[event.trial_id]], State.RUNNING)
                self._listener.started(event.trial_id, flight.left[event.trial_id].name)
        running = {trial_id: rows for trial_id, rows in epochs.items() if trial_id in flight.left}
        if running:
            self._work.store.record_epochs(running, attempts=self._table.attempts)

    def ended(self, key: str, ending: Ending | None) -> None:
        """The pack is over; `ending` says why where its worker did not come to its end.

        The trial that was running when the process died gets another attempt in a pack of its own, or fails. Trials
        that were not started go back into the queue, and so does all that came to an unfit machine; one that was asked
        to stop is given back to the store. Raises UserError where workers do not even start.
        """
        flight = self._flights.pop(key)
        self._next_ask_s = 0.0
        patiently(lambda: self._recover(flight))
        ending = ending or Ending(EndingKind.ERROR)
        unfit = ending.kind is EndingKind.MACHINE_UNFIT
        if unfit and ending.cause not in self._refusals:
            self._refusals.add(ending.cause)
            self._listener.note(ending.cause)
        left = list(flight.left.values())
        if left and not (flight.given_up or unfit):
            if flight.started and (ending.died or not flight.some_ended):
                self._retry_or_fail(left.pop(0), ending)
            elif not (flight.started or flight.some_ended or ending.kind is EndingKind.MACHINE_LEFT):
                self._count_start_failure(ending)
        self._put_back(left)

    def close(self) -> None:
        """Record results that are durable already, and give back every other trial that is still ours."""
        try:
            # Where an object store is away, the next run finds these results.
            with contextlib.suppress(BucketError):
                for flight in self._flights.values():
                    self._recover(flight)
        finally:
            self._table.release(self._table.claimed)

    def _wait(self, trials: Sequence[PlannedTrial]) -> None:
        self._table.move(trials, State.WAITING)
        self._queue.add(self._packs(trials))

    def _put_back(self, trials: Sequence[PlannedTrial]) -> None:
        """Trials that are claimed already, and made no attempt, go before all others."""
        self._table.move(trials, State.CLAIMED)
        self._queue.add(self._packs(trials), first=True)

    def _take_over(self) -> None:
        """Take what is free again of the trials of other drivers; the store is asked now and then only."""
        if not self._table.any(State.ELSEWHERE) or time.monotonic() < self._next_poll_s:
            return
        self._next_poll_s = time.monotonic() + POLL_S
        expire_dead_owners(self._work.store)
        self._tell_ended_elsewhere()
        self._queue.add(self._packs(self._table.claim(list(self._table.trials(State.ELSEWHERE).values()))))

    def _ask_source(self) -> None:
        """Queue what the source has for a free worker; forget the source at its end."""
        if self._source is None or len(self._flights) >= self._workers:
            return
        if time.monotonic() < self._next_ask_s:
            return
        busy = set(self._table.trials(State.RETRIED, State.HANDED_OUT, State.RUNNING, State.ELSEWHERE))
        more = self._source.more(busy | self._stop_requests)
        if more is None or (self._stop_requests and not (more or busy)):
            self._source = None
            return
        # Without anything new, what it says changes when a trial ends, here or in another driver.
        self._next_ask_s = 0.0 if more else time.monotonic() + POLL_S
        self._wait(more)

    def _is_searched(self, trial: PlannedTrial) -> bool:
        return self._source is not None and self._source.is_searched(trial)

    def _packs(self, trials: Sequence[PlannedTrial]) -> list[Pack]:
        """Packs of trials. Searched ones go in packs of their own, since each one's thresholds need those before it,
        and so do later measurements, of whose time nothing is known, and what ran out of memory."""
        lacking = self._work.lacking
        together, apart = [], []
        for trial in trials:
            alone = self.attempts.starved(trial.trial_id)
            if alone or trial.trial_id in lacking or self._is_searched(trial):
                apart.append(Pack((trial,), lacking=tuple(lacking.get(trial.trial_id, ())), alone=alone))
            else:
                together.append(trial)
        return [*pack(together, slots=self.slots, seconds_per_trial=self._work.seconds_per_trial), *apart]

    def _without_stopped(self, trials: Sequence[PlannedTrial]) -> list[PlannedTrial]:
        """Those that nobody asked to stop; the others are given back."""
        self._release([trial for trial in trials if trial.trial_id in self._stop_requests])
        return [trial for trial in trials if trial.trial_id not in self._stop_requests]

    def _release(self, trials: Sequence[PlannedTrial]) -> None:
        self._table.release(trials)
        for trial in trials:
            self._listener.stopped(trial.trial_id, trial.name)

    def _claim(self, trials: Sequence[PlannedTrial]) -> list[PlannedTrial]:
        """Of queued trials those that may start now; those that another driver runs are kept in mind."""
        waited = self._table.any(State.ELSEWHERE)
        claimed = self._table.claim(trials)
        if len(claimed) < len(trials):
            self._tell_ended_elsewhere()
            count = len(self._table.trials(State.ELSEWHERE))
            if count and not waited:
                subject = "1 trial is" if count == 1 else f"{count} trials are"
                self._listener.note(f"{subject} run by another driver: waiting for them at the end.")
        return claimed

    def _tell_ended_elsewhere(self) -> None:
        elsewhere = self._table.trials(State.ELSEWHERE)
        for outcome in self._table.ended_elsewhere():
            self._end(elsewhere[outcome.trial_id], outcome)

    def _recover(self, flight: _Flight) -> None:
        """Record what the worker made durable and could not report."""
        if flight.pack.lacking:
            for outcome in self._recorder.unreported_measurements(list(flight.left), flight.pack.lacking):
                self._end(flight.left.pop(outcome.trial_id), outcome)
            return
        may_be_pruned = flight.pack.stop_above is not None
        for outcome, taken in self._recorder.unreported(list(flight.left), may_be_pruned=may_be_pruned):
            self._end_if_taken(flight.left.pop(outcome.trial_id), outcome, taken)

    def _record(self, flight: _Flight, outcome: TrialOutcome) -> None:
        trial_id, lacking = outcome.trial_id, flight.pack.lacking
        if lacking:
            _, problems = patiently(lambda: self._recorder.measurements({trial_id: lacking}))
            if problems and outcome.cause is None:
                outcome = TrialOutcome(trial_id=trial_id, state="failed", cause=problems[trial_id])
            self._end(flight.left.pop(trial_id), outcome)
            return
        try:
            taken = self._recorder.outcome(outcome)
        except DamagedFileError as error:
            self._retry_or_fail(flight.left.pop(trial_id), Ending(EndingKind.ERROR, str(error)), "it runs again")
        else:
            self._end_if_taken(flight.left.pop(trial_id), outcome, taken)

    def _retry_or_fail(
        self, trial: PlannedTrial, ending: Ending, what_next: str = "it goes on from its last checkpoint"
    ) -> None:
        measured = trial.trial_id in self._work.lacking
        failure = self.attempts.failure(trial.trial_id, ending)
        if failure is None:
            what_next = "it is measured again" if measured else what_next
            if ending.short_of_memory:
                what_next += ", alone on its machine"
            self._listener.note(f"{trial.name}: {ending.cause}; {what_next}.")
            self._table.move([trial], State.RETRIED)
            self._queue.add(self._packs([trial]))
            return
        taken = measured or self._work.store.fail(
            trial.trial_id,
            cause=failure,
            run_id=self._work.run_id,
            attempt=self._table.attempts[trial.trial_id],
        )
        outcome = TrialOutcome(trial_id=trial.trial_id, state="failed", cause=failure)
        self._end_if_taken(trial, outcome, taken, State.FAILED)

    def _count_start_failure(self, ending: Ending) -> None:
        self._start_failures += 1
        if self._start_failures >= MOST_START_FAILURES:
            raise UserError(
                f"{self._start_failures} workers in a row ended before they started a trial ({ending.cause}): check "
                "that every machine has this project, its packages and the same Ray token (or "
                "RAY_AUTH_MODE=disabled), then run the same command again."
            )

    def _end_if_taken(
        self, trial: PlannedTrial, outcome: TrialOutcome, taken: bool, state: State = State.RECORDED
    ) -> None:
        """The trial came to this end, unless the store has not taken it: then another driver has the trial by now, or
        has brought it to its end."""
        if taken:
            self._end(trial, outcome, state)
        else:
            self._table.move([trial], State.ELSEWHERE)
            self._tell_ended_elsewhere()

    def _end(self, trial: PlannedTrial, outcome: TrialOutcome, state: State = State.RECORDED) -> None:
        self._table.move([trial], state)
        trial_ended()
        self.attempts.ended(trial.trial_id)
        if trial.trial_id in self._work.lacking and outcome.cause is not None:
            self.not_measured[trial.trial_id] = outcome.cause
        self._listener.finished(trial.trial_id, outcome)
