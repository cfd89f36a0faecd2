"""Which pack runs next, and what becomes of trials when a pack ends, well or badly. Knows nothing of Ray.

Trials are claimed pack by pack, when a worker is about to be free: two drivers that are given the same study share it.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orchestrator.events import TrialEvent
from orchestrator.execution import ScheduleOptions
from orchestrator.lease import LEASE_S, dead_owners
from orchestrator.packs import Pack, pack
from orchestrator.progress import Listener
from orchestrator.record import UnusableResultError, read_result, record_outcome
from orchestrator.store.interface import Store
from orchestrator.store.records import PlannedTrial, TrialState
from trainables.errors import UserError
from trainables.outcome import EpochMetrics, TrialOutcome

POLL_S = 2.0
"""How often the store is asked about trials that another driver runs."""
MOST_START_FAILURES = 3
"""So many workers in a row that end before they take up a trial end the sweep."""
ENDED: tuple[TrialState, ...] = ("done", "diverged", "failed", "pruned")


@dataclass(frozen=True)
class _Queued:
    pack: Pack
    claimed: bool = False
    """True for trials of a dead pack that were never started: they are ours already, and made no attempt."""


@dataclass
class _Flight:
    """A pack on its way: the trials without an outcome, in the order in which the worker takes them up."""

    waiting: dict[str, PlannedTrial]
    started: bool = False
    ended: int = 0


class Dispatcher:
    """Hands out packs and takes in what they report. Every trial ends in exactly one of: recorded, failed, released."""

    def __init__(
        self,
        trials: Sequence[PlannedTrial],
        *,
        store: Store,
        run_id: int,
        owner: str,
        options: ScheduleOptions,
        listener: Listener,
        slots: int,
    ) -> None:
        self._store, self._run_id, self._owner = store, run_id, owner
        self._options, self._listener, self._slots = options, listener, slots
        self._queue = deque(_Queued(part) for part in self._pack(trials))
        self._flights: dict[str, _Flight] = {}
        self._held: dict[str, PlannedTrial] = {}
        self._foreign: dict[str, PlannedTrial] = {}
        self._next_poll_s = 0.0
        self._attempts: Counter[str] = Counter()
        self._start_failures = 0
        # One pack waits ready for the next free worker, except where that would exceed the user's own limit.
        limit = options.max_concurrent
        self._most_flights = slots + 1 if limit is None or limit > slots else limit

    @property
    def finished(self) -> bool:
        """True when nothing is left to hand out and nothing can come back."""
        return not (self._queue or self._flights or self._foreign)

    @property
    def held(self) -> int:
        """How many trials are ours by the store: claimed, and neither ended nor given back."""
        return len(self._held)

    def next_pack(self, key: str) -> Pack | None:
        """Claim and hand out the next pack under the name `key`; None while there is nothing to hand out."""
        if len(self._flights) >= self._most_flights:
            return None
        if not self._queue and self._foreign and time.monotonic() >= self._next_poll_s:
            self._poll()
        while self._queue:
            queued = self._queue.popleft()
            trials = queued.pack.trials if queued.claimed else self._claim(queued.pack.trials)
            if trials:
                self._flights[key] = _Flight({trial.trial_id: trial for trial in trials})
                return Pack(tuple(trials))
        return None

    def events(self, key: str, events: Iterable[TrialEvent]) -> None:
        """Take in what the pack's worker reports. Raises UserError where its disk takes nothing more."""
        flight = self._flights[key]
        epochs: dict[str, list[EpochMetrics]] = {}
        for event in events:
            if event.disk is not None:
                raise UserError(
                    f"The disk of {self._options.storage} {event.disk} and type the same command again; what was done "
                    "is kept."
                )
            if event.outcome is not None:
                self._record(flight, event.outcome)
            elif event.epoch is not None:
                epochs.setdefault(event.trial_id, []).append(event.epoch)
                self._listener.epoch(event.trial_id, event.epoch)
            else:
                flight.started = True
                self._start_failures = 0
                self._listener.started(event.trial_id, flight.waiting[event.trial_id].name)
        running = {trial_id: rows for trial_id, rows in epochs.items() if trial_id in flight.waiting}
        if running:
            self._store.record_epochs(running)

    def ended(self, key: str, cause: str | None, *, process_died: bool) -> None:
        """The pack is over; `cause` says why where its worker did not come to its end.

        The trial that was running when the process died gets another attempt in a pack of its own, or fails with
        `cause`. Trials that were not started go back into the queue. Raises UserError where workers do not even start.
        """
        flight = self._flights.pop(key)
        self._recover(flight)
        left = list(flight.waiting.values())
        if not left:
            return
        cause = cause or "its worker ended without reporting it"
        if flight.started and (process_died or not flight.ended):
            self._retry_or_fail(left.pop(0), cause)
        elif not flight.started and not flight.ended:
            self._start_failures += 1
            if self._start_failures >= MOST_START_FAILURES:
                raise UserError(
                    f"{self._start_failures} workers in a row ended before they started a trial ({cause}): check that "
                    "every machine has this project, its packages and the same Ray token (or RAY_AUTH_MODE=disabled), "
                    "then run the same command again."
                )
        self._queue.extendleft(_Queued(part, claimed=True) for part in reversed(self._pack(left)))

    def close(self) -> None:
        """Record results that are durable already, and give back every other trial that is still ours."""
        try:
            for flight in self._flights.values():
                self._recover(flight)
        finally:
            self._store.release(list(self._held), owner=self._owner)

    def _pack(self, trials: Sequence[PlannedTrial]) -> list[Pack]:
        return pack(trials, slots=self._slots, seconds_per_trial=self._options.seconds_per_trial)

    def _claim(self, trials: Sequence[PlannedTrial]) -> list[PlannedTrial]:
        """Claim trials; those that another driver runs are kept in mind, of those that ended meanwhile it is told."""
        got = set(self._store.claim([trial.trial_id for trial in trials], owner=self._owner, lease_s=LEASE_S))
        mine = [trial for trial in trials if trial.trial_id in got]
        self._held.update({trial.trial_id: trial for trial in mine})
        others = {trial.trial_id: trial for trial in trials if trial.trial_id not in got}
        if others:
            known = len(self._foreign)
            self._foreign.update(others)
            self._drop_ended()
            if self._foreign and not known:
                count = len(self._foreign)
                self._listener.note(f"{count} trials are run by another driver: waiting for them at the end.")
        return mine

    def _poll(self) -> None:
        """Drop trials of other drivers that ended, and take over those whose driver died or gave them back."""
        self._next_poll_s = time.monotonic() + POLL_S
        for owner in dead_owners(self._store.owners()):
            self._store.expire(owner)
        self._drop_ended()
        free = self._store.claim(list(self._foreign), owner=self._owner, lease_s=LEASE_S)
        trials = [self._foreign.pop(trial_id) for trial_id in free]
        self._held.update({trial.trial_id: trial for trial in trials})
        self._queue.extend(_Queued(part, claimed=True) for part in self._pack(trials))

    def _drop_ended(self) -> None:
        """Tell of trials of other drivers that ended."""
        for trial_id, state in self._store.states(list(self._foreign)).items():
            if state in ENDED:
                outcome = TrialOutcome(
                    trial_id=trial_id,
                    state="failed" if state == "pruned" else state,
                    cause=None if state == "done" else f"{state} in another driver's run",
                )
                self._tell(self._foreign.pop(trial_id), outcome)

    def _recover(self, flight: _Flight) -> None:
        """Record what the worker made durable and could not report."""
        for trial_id in list(flight.waiting):
            try:
                result = read_result(self._options.storage, trial_id)
            except UnusableResultError:
                continue
            if result is not None:
                self._store.record(result[0], run_id=self._run_id, spectrum=result[1])
                self._end(flight, result[0])

    def _retry_or_fail(self, trial: PlannedTrial, cause: str) -> None:
        self._attempts[trial.trial_id] += 1
        attempts = self._attempts[trial.trial_id]
        if attempts < self._options.max_attempts:
            self._listener.note(f"{trial.name}: {cause}; it goes on from its last checkpoint.")
            self._queue.append(_Queued(Pack((trial,))))
            return
        cause = f"{cause} (in each of {attempts} attempts)" if attempts > 1 else cause
        outcome = TrialOutcome(trial_id=trial.trial_id, state="failed", cause=cause)
        self._store.fail(trial.trial_id, cause=cause, run_id=self._run_id)
        self._tell(trial, outcome)

    def _record(self, flight: _Flight, outcome: TrialOutcome) -> None:
        self._end(flight, record_outcome(self._store, self._options.storage, outcome, run_id=self._run_id))

    def _end(self, flight: _Flight, outcome: TrialOutcome) -> None:
        flight.ended += 1
        self._tell(flight.waiting.pop(outcome.trial_id), outcome)

    def _tell(self, trial: PlannedTrial, outcome: TrialOutcome) -> None:
        self._held.pop(trial.trial_id, None)
        self._listener.finished(trial.trial_id, outcome)
