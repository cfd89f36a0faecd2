"""Which pack runs next, and what becomes of trials when a pack ends, well or badly. Knows nothing of Ray.

Trials are claimed pack by pack, when a worker is about to be free: two drivers that are given the same study share it.
Beyond those that it starts with, a source may give it trials that depend on the results of earlier ones.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from orchestrator.cluster.run_options import RunOptions
from orchestrator.schedule.attempts import Attempts
from orchestrator.schedule.other_drivers import POLL_S, ForeignTrials
from orchestrator.schedule.packs import Pack, pack
from orchestrator.schedule.recording import record_outcome
from orchestrator.schedule.study_work import MACHINE_LEFT
from orchestrator.storage.bucket import BucketError, patiently
from orchestrator.store.lease import LEASE_S
from orchestrator.store.records import PlannedTrial
from orchestrator.store.store import Store
from orchestrator.watch.listener import Listener
from orchestrator.worker.messages import TrialEvent
from trainables.errors import UserError
from trainables.trial_folder.folder import UnusableResultError
from trainables.trial_folder.outcome import EpochMetrics, TrialOutcome

MOST_START_FAILURES = 3
"""So many workers in a row that end before they take up a trial end the sweep."""


class Source(Protocol):
    """Knows trials that nobody knew when the sweep began; those that it gives are registered in the store."""

    def more(self, busy: Collection[str]) -> Sequence[PlannedTrial] | None:
        """Trials to run now, of which none is in `busy` (trial ids); empty while there may be some later, None at the
        end."""

    def is_searched(self, trial: PlannedTrial) -> bool:
        """Whether the trial may be stopped early. Such a trial is taken up by a free worker, never in advance, so that
        as much as can be is known before."""

    def stop_above(self, trial: PlannedTrial) -> Mapping[int, float]:
        """For a searched trial that starts now: the validation losses above which it is stopped, by epoch."""


@dataclass
class _Flight:
    """A pack on its way: the trials without an outcome, in the order in which the worker takes them up."""

    waiting: dict[str, PlannedTrial]
    started: bool = False
    ended: int = 0
    running: str | None = None
    """The id of the trial that its worker is at."""
    given_up: bool = False
    """It is being ended: what is left of it goes back into the queue."""
    may_be_pruned: bool = False


class Dispatcher:
    """Hands out packs and takes in what they report. Every trial ends in exactly one of: recorded, failed, released."""

    def __init__(
        self,
        trials: Sequence[PlannedTrial],
        *,
        store: Store,
        run_id: int,
        owner: str,
        options: RunOptions,
        seconds_per_trial: float,
        listener: Listener,
        slots: int,
        source: Source | None = None,
    ) -> None:
        """`slots` packs fit on the machines at first; `seconds_per_trial` is an estimate, for the size of packs."""
        self._store, self._run_id, self._owner = store, run_id, owner
        self._options, self._listener = options, listener
        self._seconds_per_trial = seconds_per_trial
        self.resize(slots)
        self._source = source
        self._asks_again_s = 0.0
        self._queue = deque(self._pack(trials))
        self._flights: dict[str, _Flight] = {}
        self._held: dict[str, PlannedTrial] = {}
        self._foreign = ForeignTrials(store, owner, self._tell)
        self._attempts = Attempts(options.max_attempts)
        self._start_failures = 0
        self._known = {trial.trial_id for trial in trials}
        self._stopped: set[str] = set()
        self._told: set[str] = set()

    def resize(self, slots: int) -> None:
        """So many packs fit on the machines that there are now; `slots` says it."""
        self.slots, limit = slots, self._options.max_concurrent
        # One pack waits ready for the next free worker, except where that would exceed the user's own limit.
        self._workers = slots if limit is None else min(slots, limit)
        self._most_flights = slots + 1 if limit is None or limit > slots else limit

    def add(self, trials: Sequence[PlannedTrial]) -> None:
        """Run these trials too, but for those that are known already."""
        new = [trial for trial in trials if trial.trial_id not in self._known]
        if new:
            self._known |= {trial.trial_id for trial in new}
            self._queue.extend(self._pack(new))
            self._listener.added(len(new))

    def stop(self, trial_ids: Collection[str]) -> None:
        """Run these trials no more: they are given back, as they are, and are left to a later run."""
        self._stopped |= set(trial_ids)
        for trial in self._foreign.forget(self._stopped):
            self._listener.stopped(trial.trial_id, trial.name)

    def give_up(self, nowhere: Collection[str] = ()) -> list[str]:
        """The packs, of those not named before, that have to be ended: their worker is at a trial that is to stop, or
        they have none, and are among those for which there is no machine any more."""
        keys = [key for key, flight in self._flights.items() if flight.running in self._stopped]
        keys += [key for key in nowhere if not self._flights[key].started]
        new = [key for key in keys if not self._flights[key].given_up]
        for key in new:
            self._flights[key].given_up = True
        return new

    @property
    def finished(self) -> bool:
        """True when nothing is left to hand out and nothing can come back."""
        return not (self._queue or self._flights or self._foreign) and self._source is None

    @property
    def held(self) -> int:
        """How many trials are ours by the store: claimed, and neither ended nor given back."""
        return len(self._held)

    @property
    def running(self) -> set[str]:
        """The ids of the trials that workers are at, as far as they have told."""
        return {flight.running for flight in self._flights.values() if flight.running is not None}

    def next_pack(self, key: str) -> Pack | None:
        """Claim and hand out the next pack under the name `key`; None while there is nothing to hand out."""
        if len(self._flights) >= self._most_flights:
            return None
        if not self._queue:
            taken_over = self._foreign.taken_over()
            self._held.update({trial.trial_id: trial for trial in taken_over})
            self._put_back(taken_over)
        if not self._queue:
            self._ask()
        while self._queue:
            searched = self._is_searched(self._queue[0])
            if searched and len(self._flights) >= self._workers:
                return None
            trials = self._mine(self._queue.popleft())
            if trials:
                self._flights[key] = _Flight({trial.trial_id: trial for trial in trials}, may_be_pruned=searched)
                rule = self._source.stop_above(trials[0]) if self._source and searched else None
                return Pack(tuple(trials), stop_above=rule)
        return None

    def events(self, key: str, events: Iterable[TrialEvent]) -> None:
        """Take in what the pack's worker reports. Raises UserError where its disk takes nothing more."""
        flight = self._flights[key]
        epochs: dict[str, list[EpochMetrics]] = {}
        for event in events:
            if event.disk is not None:
                raise UserError(
                    f"The disk of {self._options.storage.work_folder} {event.disk} and type the same command again; "
                    "what was done is kept."
                )
            if event.bucket is not None:
                raise UserError(f"{event.bucket}; what was done is kept.")
            if event.outcome is not None:
                flight.running = None
                self._record(flight, event.outcome)
            elif event.epoch is not None:
                epochs.setdefault(event.trial_id, []).append(event.epoch)
                self._listener.epoch(event.trial_id, event.epoch)
            else:
                flight.started, flight.running = True, event.trial_id
                self._start_failures = 0
                self._listener.started(event.trial_id, flight.waiting[event.trial_id].name)
        running = {trial_id: rows for trial_id, rows in epochs.items() if trial_id in flight.waiting}
        if running:
            self._store.record_epochs(running)

    def machines_left(self, present: Collection[str]) -> None:
        """Only machines of these addresses are there now: see `Attempts.machines_left`."""
        self._attempts.machines_left(present)

    def refused(self, key: str, why: str) -> None:
        """The pack came to a machine on which it must not run; it goes back into the queue."""
        if why not in self._told:
            self._told.add(why)
            self._listener.note(why)
        self._flights[key].given_up = True
        self.ended(key, why, process_died=False)

    def ended(self, key: str, cause: str | None, *, process_died: bool, machine: str | None = None) -> None:
        """The pack is over; `cause` says why where its worker did not come to its end, and `machine` where that was.

        The trial that was running when the process died gets another attempt in a pack of its own, or fails with
        `cause`. Trials that were not started go back into the queue; one that was asked to stop is given back to the
        store. Raises UserError where workers do not even start.
        """
        flight = self._flights.pop(key)
        self._asks_again_s = 0.0
        patiently(lambda: self._recover(flight))
        left = list(flight.waiting.values())
        if not left:
            return
        cause = cause or "its worker ended without reporting it"
        if flight.given_up:
            self._put_back(left)
            return
        if flight.started and (process_died or not flight.ended):
            self._retry_or_fail(left.pop(0), cause, machine)
        elif not flight.started and not flight.ended and cause != MACHINE_LEFT:
            self._start_failures += 1
            if self._start_failures >= MOST_START_FAILURES:
                raise UserError(
                    f"{self._start_failures} workers in a row ended before they started a trial ({cause}): check that "
                    "every machine has this project, its packages and the same Ray token (or RAY_AUTH_MODE=disabled), "
                    "then run the same command again."
                )
        self._put_back(left)

    def close(self) -> None:
        """Record results that are durable already, and give back every other trial that is still ours."""
        try:
            # Where an object store is away, the next run finds these results.
            with contextlib.suppress(BucketError):
                for flight in self._flights.values():
                    self._recover(flight)
        finally:
            self._store.release(list(self._held), owner=self._owner)

    def _ask(self) -> None:
        """Queue what the source has for a free worker; forget the source at its end."""
        if self._source is None or len(self._flights) >= self._workers or time.monotonic() < self._asks_again_s:
            return
        busy = {trial_id for flight in self._flights.values() for trial_id in flight.waiting} | self._foreign.ids
        more = self._source.more(busy | self._stopped)
        if more is None or (self._stopped and not (more or busy)):
            self._source = None
            return
        # Without anything new, what it says changes when a trial ends, here or in another driver.
        self._asks_again_s = 0.0 if more else time.monotonic() + POLL_S
        self._queue.extend(self._pack(more))

    def _is_searched(self, pack: Pack) -> bool:
        return self._source is not None and any(map(self._source.is_searched, pack.trials))

    def _pack(self, trials: Sequence[PlannedTrial]) -> list[Pack]:
        """Packs of trials; searched ones each in their own, since each one's thresholds need those before it."""
        alone = [Pack((trial,)) for trial in trials if self._source and self._source.is_searched(trial)]
        others = [trial for trial in trials if not (self._source and self._source.is_searched(trial))]
        return pack(others, slots=self.slots, seconds_per_trial=self._seconds_per_trial) + alone

    def _put_back(self, trials: Sequence[PlannedTrial]) -> None:
        """Trials that are claimed already go before all others."""
        self._queue.extendleft(replace(pack, claimed=True) for pack in reversed(self._pack(trials)))

    def _claim(self, trials: Sequence[PlannedTrial]) -> list[PlannedTrial]:
        """Claim trials; those that another driver runs are kept in mind, of those that ended meanwhile it is told."""
        got = set(self._store.claim([trial.trial_id for trial in trials], owner=self._owner, lease_s=LEASE_S))
        mine = [trial for trial in trials if trial.trial_id in got]
        self._held.update({trial.trial_id: trial for trial in mine})
        others = [trial for trial in trials if trial.trial_id not in got]
        if others:
            known = len(self._foreign)
            self._foreign.add(others)
            if self._foreign and not known:
                count = len(self._foreign)
                what = "1 trial is" if count == 1 else f"{count} trials are"
                self._listener.note(f"{what} run by another driver: waiting for them at the end.")
        return mine

    def _recover(self, flight: _Flight) -> None:
        """Record what the worker made durable and could not report."""
        self._options.storage.bring_results(flight.waiting)
        for trial_id in list(flight.waiting):
            try:
                result = self._options.storage.trial(trial_id).result()
            except UnusableResultError:
                continue
            if result is not None and (result[0].state != "pruned" or flight.may_be_pruned):
                self._store.record(result[0], run_id=self._run_id, spectrum=result[1])
                self._end(flight, result[0])

    def _mine(self, pack: Pack) -> list[PlannedTrial]:
        """The pack's trials that are to run here: claimed, and not among those that somebody asked to stop."""
        stopped = [trial for trial in pack.trials if trial.trial_id in self._stopped]
        ours = [trial.trial_id for trial in stopped if trial.trial_id in self._held]
        if ours:
            self._store.release(ours, owner=self._owner)
        for trial in stopped:
            self._held.pop(trial.trial_id, None)
            self._listener.stopped(trial.trial_id, trial.name)
        others = [trial for trial in pack.trials if trial.trial_id not in self._stopped]
        return others if pack.claimed or not others else self._claim(others)

    def _retry_or_fail(self, trial: PlannedTrial, cause: str, machine: str | None) -> None:
        failure = self._attempts.failure(trial.trial_id, cause, machine)
        if failure is None:
            self._listener.note(f"{trial.name}: {cause}; it goes on from its last checkpoint.")
            self._queue.append(Pack((trial,)))
            return
        outcome = TrialOutcome(trial_id=trial.trial_id, state="failed", cause=failure)
        self._store.fail(trial.trial_id, cause=failure, run_id=self._run_id)
        self._tell(trial, outcome)

    def _record(self, flight: _Flight, outcome: TrialOutcome) -> None:
        self._end(flight, self._recorded(outcome))

    def _recorded(self, outcome: TrialOutcome) -> TrialOutcome:
        return record_outcome(self._store, self._options.storage, outcome, run_id=self._run_id)

    def _end(self, flight: _Flight, outcome: TrialOutcome) -> None:
        flight.ended += 1
        self._tell(flight.waiting.pop(outcome.trial_id), outcome)

    def _tell(self, trial: PlannedTrial, outcome: TrialOutcome) -> None:
        self._attempts.ended(trial.trial_id)
        self._held.pop(trial.trial_id, None)
        self._listener.finished(trial.trial_id, outcome)
