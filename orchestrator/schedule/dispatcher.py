"""Choose the next pack of trials for a worker, and queue trials that must run again.

Drivers that share a study claim a pack just before a worker is free. Done trials need no claim,
because a second measurement overwrites nothing.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from math import inf

from orchestrator.schedule.attempts import Attempts
from orchestrator.schedule.outcomes import Outcomes
from orchestrator.schedule.packs import Flight, PackQueue, pack
from orchestrator.schedule.study_work import POLL_S, StudyWork
from orchestrator.schedule.trial_table import State, TrialTable
from orchestrator.storage import BucketError
from orchestrator.store import PlannedTrial, expire_dead_owners
from orchestrator.words import counted
from orchestrator.worker import ORDERLY_END, Ending, Pack, TrialEvent


class Dispatcher:
    """Hands out packs and processes reports until every trial is recorded, failed or released."""

    def __init__(
        self, trials: Sequence[PlannedTrial], work: StudyWork, owner: str, *, slots: int
    ) -> None:
        """Queue `trials`.

        `owner` is this driver's name in the store. `slots` is the number of packs that can run at a
        time.
        """
        self._work = work
        self._listener, self._source = work.listener, work.source
        self.attempts = Attempts(work.options.max_attempts)
        self.resize(slots)
        self._next_poll_s = self._next_ask_s = 0.0
        self._table = TrialTable(work.store, owner, exempt_ids=work.unmeasured)
        self._outcomes = Outcomes(work, self._table, self.attempts)
        self.failures = self._outcomes.failures
        self.measurement_failures = self._outcomes.measurement_failures
        self._queue = PackQueue()
        self._flights: dict[str, Flight] = {}
        self._stop_requests: set[str] = set()
        self._add_waiting(trials)

    def resize(self, slots: int) -> None:
        """Adapt to a new number of packs that can run at a time."""
        self.slots, limit = slots, self._work.options.max_concurrent
        # One pack waits ready for the next free worker, unless that would exceed the user's limit.
        self._workers = slots if limit is None else min(slots, limit)
        self._flight_limit = slots + 1 if limit is None or limit > slots else limit

    def stop(self, trial_ids: Collection[str]) -> None:
        """Stop these trials. A later run resumes them."""
        self._stop_requests |= set(trial_ids)
        self._drop_stopped([*self._table.trials(State.ELSEWHERE).values()])

    def give_up(
        self, keys_without_machine: Collection[str] = (), excluded_machines: Collection[str] = ()
    ) -> list[str]:
        """Return the keys of packs that must end, each key once.

        A pack must end if the user asked to stop the trial that it runs, or if it runs on one of
        `excluded_machines`. A pack without a worker must also end if no machine fits it
        (`keys_without_machine`) or if the user asked to stop all its trials.
        """
        running = self._table.trials(State.RUNNING).keys()
        keys = []
        for key, flight in self._flights.items():
            stopped_ids = flight.open_trials.keys() & self._stop_requests
            is_useless = stopped_ids == flight.open_trials.keys() or key in keys_without_machine
            must_end = stopped_ids & running or flight.machine in excluded_machines
            if must_end or (is_useless and not flight.started):
                keys += [] if flight.given_up else [key]
                flight.given_up = True
        return keys

    @property
    def finished(self) -> bool:
        """True if no trial is waiting, running here or in another driver, or still to be chosen."""
        return not (
            self._queue or self._flights or self._table.trials(State.ELSEWHERE) or self._source
        )

    @property
    def claimed_trials(self) -> list[PlannedTrial]:
        """Trials that this driver has claimed."""
        return self._table.claimed_trials

    @property
    def waits_for_a_start(self) -> bool:
        """True if packs are handed out but no worker has started one."""
        return bool(self._flights) and not any(flight.started for flight in self._flights.values())

    def show(self) -> None:
        """Inform the listener about the running packs and trials."""
        pack_sizes = [len(flight.pack.trials) for flight in self._flights.values()]
        self._listener.refresh(pack_sizes, set(self._table.trials(State.RUNNING)))

    def open_ids(self, key: str) -> list[str]:
        """Return the ids of the pack's trials without an outcome, in the worker's order."""
        return list(self._flights[key].open_trials)

    def next_pack(self, key: str) -> Pack | None:
        """Claim and return the next pack; None if no pack is ready."""
        if len(self._flights) >= self._flight_limit:
            return None
        if not self._queue.shared_packs:
            self._take_over()
        if not self._queue.shared_packs:
            self._ask_source()
        ready = self._queue.ready([flight.pack for flight in self._flights.values()])
        while ready:
            is_searched = any(map(self._is_searched, ready[0].trials))
            if is_searched and len(self._flights) >= self._workers:
                return None
            candidate = ready.popleft()
            trials = self._claim(self._drop_stopped(candidate.trials))
            if trials:
                rules = {}
                if self._source and is_searched:
                    rules = {trial.trial_id: self._source.stop_above(trial) for trial in trials}
                new_pack = replace(candidate, trials=tuple(trials), stop_above=rules)
                open_trials = {trial.trial_id: trial for trial in trials}
                self._flights[key] = Flight(new_pack, open_trials)
                self._table.move(trials, State.HANDED_OUT)
                return new_pack
        return None

    def process_events(self, key: str, events: Iterable[TrialEvent], machine: str = "") -> None:
        """Process the events that the worker of pack `key` sent from `machine`."""
        self._flights[key].machine = machine
        self._enqueue(self._outcomes.process_events(self._flights[key], events))

    def end_pack(self, key: str, ending: Ending = ORDERLY_END) -> None:
        """Process the end of a pack.

        A trial that was running when the process died is retried or fails. Trials that did not
        start are queued again, unless the user asked to stop them. So are all trials on an unfit
        machine.
        """
        flight = self._flights.pop(key)
        self._next_ask_s = 0.0
        self._enqueue(self._outcomes.end_pack(flight, ending))
        # Trials that are already claimed and made no attempt go first.
        open_trials = list(flight.open_trials.values())
        self._table.move(open_trials, State.CLAIMED)
        self._enqueue(open_trials, first=True)

    def close(self) -> None:
        """Record results that workers did not report. Release all other claimed trials."""
        try:
            # If the object store is unreachable, the next run finds these results.
            with contextlib.suppress(BucketError):
                for flight in self._flights.values():
                    self._outcomes.recover(flight)
        finally:
            self._table.release(self._table.claimed_trials)

    def _add_waiting(self, trials: Sequence[PlannedTrial]) -> None:
        self._table.move(trials, State.WAITING)
        self._enqueue(trials)

    def _enqueue(self, trials: Sequence[PlannedTrial], *, first: bool = False) -> None:
        self._queue.add(self._make_packs(trials), first=first)

    def _take_over(self) -> None:
        elsewhere_trials = self._table.trials(State.ELSEWHERE)
        if not elsewhere_trials or time.monotonic() < self._next_poll_s:
            return
        self._next_poll_s = time.monotonic() + POLL_S
        expire_dead_owners(self._work.store)
        self._outcomes.end_elsewhere()
        storage, busy_ids = self._work.options.storage, self._table.busy_ids
        free_trials = [
            trial
            for trial_id, trial in self._table.trials(State.ELSEWHERE).items()
            if trial_id not in busy_ids or not storage.trial(trial_id).worker()
        ]
        self._enqueue(self._table.claim(free_trials))

    def _ask_source(self) -> None:
        if self._source is None or len(self._flights) >= self._workers:
            return
        if time.monotonic() < self._next_ask_s:
            return
        busy_ids = set(
            self._table.trials(State.RETRIED, State.HANDED_OUT, State.RUNNING, State.ELSEWHERE)
        )
        new_trials = self._source.more(busy_ids | self._stop_requests)
        if new_trials is None or (self._stop_requests and not (new_trials or busy_ids)):
            self._source = None
            return
        # While the source has no new trial, its answer changes only when a trial ends, here or in
        # another driver.
        self._next_ask_s = 0.0 if new_trials else time.monotonic() + POLL_S
        self._add_waiting(new_trials)

    def _is_searched(self, trial: PlannedTrial) -> bool:
        return self._source is not None and self._source.is_searched(trial)

    def _make_packs(self, trials: Sequence[PlannedTrial]) -> list[Pack]:
        unmeasured, other_trials, searched_trials, lone_packs = self._work.unmeasured, [], [], []
        for trial in trials:
            alone = self.attempts.must_run_alone(trial.trial_id)
            if alone or trial.trial_id in unmeasured:  # the time of a measurement is unknown
                names = tuple(unmeasured.get(trial.trial_id, ()))
                lone_packs.append(Pack((trial,), unmeasured=names, alone=alone))
            elif self._is_searched(trial):
                searched_trials.append(trial)
            else:
                other_trials.append(trial)
        return [
            *self._cut(other_trials, self._work.seconds_per_trial),
            # Searched trials share a pack only to run as one model, since their stopping thresholds
            # soon change.
            *self._cut(searched_trials, inf),
            *lone_packs,
        ]

    def _cut(self, trials: Sequence[PlannedTrial], seconds_per_trial: float) -> list[Pack]:
        return pack(
            trials,
            slots=self.slots,
            seconds_per_trial=seconds_per_trial,
            at_once=lambda trial_id: self.attempts.mate_limit(trial_id, self._work.trials_at_once),
        )

    def _drop_stopped(self, trials: Sequence[PlannedTrial]) -> list[PlannedTrial]:
        self._release([trial for trial in trials if trial.trial_id in self._stop_requests])
        return [trial for trial in trials if trial.trial_id not in self._stop_requests]

    def _release(self, trials: Sequence[PlannedTrial]) -> None:
        self._table.release(trials)
        for trial in trials:
            self._listener.stopped(trial.trial_id, trial.name)

    def _claim(self, trials: Sequence[PlannedTrial]) -> list[PlannedTrial]:
        waiting_before = self._table.trials(State.ELSEWHERE)
        claimed_trials = self._table.claim(trials)
        if len(claimed_trials) < len(trials):
            self._outcomes.end_elsewhere()
            count = len(self._table.trials(State.ELSEWHERE))
            if count and not waiting_before:
                self._listener.note(
                    f"Another command runs {counted(count, 'trial')}. This command waits."
                )
        return claimed_trials
