"""The choice of the next pack, and the requeueing of trials. Independent of Ray.

Drivers that share a study claim pack by pack, shortly before a worker is free. Done trials with
missing measurements need no claim: measuring twice overwrites nothing."""

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
from orchestrator.worker import Ending, EndingKind, Pack, TrialEvent

WELL_OVER = Ending(EndingKind.ERROR)
"""Ending of a worker that finished its pack, for trials that it did not report."""


class Dispatcher:
    """Hands out packs and processes reports. Every trial is finally recorded, failed or
    released."""

    def __init__(
        self, trials: Sequence[PlannedTrial], work: StudyWork, owner: str, *, slots: int
    ) -> None:
        """Queue `trials`. `owner` is this driver's name in the store; `slots` packs fit at
        first."""
        self._work = work
        self._listener, self._source = work.listener, work.source
        self.attempts = Attempts(work.options.max_attempts)
        self.resize(slots)
        self._next_poll_s = self._next_ask_s = 0.0
        self._table = TrialTable(work.store, owner, unclaimed=work.lacking)
        self._outcomes = Outcomes(work, self._table, self.attempts)
        self.not_measured = self._outcomes.not_measured
        self._queue = PackQueue()
        self._flights: dict[str, Flight] = {}
        self._stop_requests: set[str] = set()
        self._wait(trials)

    def resize(self, slots: int) -> None:
        """Adapt to machines on which `slots` packs fit."""
        self.slots, limit = slots, self._work.options.max_concurrent
        # One pack waits ready for the next free worker, unless that would exceed the user's limit.
        self._workers = slots if limit is None else min(slots, limit)
        self._most_flights = slots + 1 if limit is None or limit > slots else limit

    def stop(self, trial_ids: Collection[str]) -> None:
        """Stop these trials and release them unchanged."""
        self._stop_requests |= set(trial_ids)
        elsewhere = self._table.trials(State.ELSEWHERE)
        self._release(
            [trial for trial_id, trial in elsewhere.items() if trial_id in self._stop_requests]
        )

    def give_up(self, nowhere: Collection[str] = ()) -> list[str]:
        """Return packs to end, each once.

        The running trial of such a pack was asked to stop. Or the pack has no worker, and either no
        machine fits it any more (`nowhere`) or all its trials were asked to stop."""
        running = self._table.trials(State.RUNNING).keys()
        new = []
        for key, flight in self._flights.items():
            stopped = flight.left.keys() & self._stop_requests
            useless = stopped == flight.left.keys() or key in nowhere
            if stopped & running or (useless and not flight.started):
                new += [] if flight.given_up else [key]
                flight.given_up = True
        return new

    @property
    def finished(self) -> bool:
        """True when nothing is left to hand out and nothing can come back."""
        return not (
            self._queue or self._flights or self._table.trials(State.ELSEWHERE) or self._source
        )

    @property
    def claimed(self) -> list[PlannedTrial]:
        """Trials that this driver holds in the store: claimed, not ended, not released."""
        return self._table.claimed

    @property
    def waits_for_a_start(self) -> bool:
        """True if packs are on their way to workers and no worker has started one."""
        return bool(self._flights) and not any(flight.started for flight in self._flights.values())

    def show(self) -> None:
        """Show the listener the packs and trials that are with workers."""
        pack_sizes = [len(flight.pack.trials) for flight in self._flights.values()]
        self._listener.refresh(pack_sizes, set(self._table.trials(State.RUNNING)))

    def trial_at(self, key: str) -> str | None:
        """Return the id of the pack's current trial by its reports; None after its last trial."""
        return next(iter(self._flights[key].left), None)

    def next_pack(self, key: str) -> Pack | None:
        """Claim and return the next pack, named `key`; None if no pack is ready."""
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
                rules = {}
                if self._source and searched:
                    rules = {trial.trial_id: self._source.stop_above(trial) for trial in trials}
                handed_out = replace(queued, trials=tuple(trials), stop_above=rules)
                left = {trial.trial_id: trial for trial in trials}
                self._flights[key] = Flight(handed_out, left)
                self._table.move(trials, State.HANDED_OUT)
                return handed_out
        return None

    def events(self, key: str, events: Iterable[TrialEvent]) -> None:
        """Process events from the pack's worker. Raises UserError if it can write no more files."""
        self._enqueue(self._outcomes.events(self._flights[key], events))

    def ended(self, key: str, ending: Ending = WELL_OVER) -> None:
        """Process the end of a pack.

        The trial that was running when the process died is retried in a pack of its own, or fails.
        Unstarted trials, and all trials from an unfit machine, return to the queue. Trials that
        were asked to stop are released. Raises UserError if workers keep ending before they start a
        trial."""
        flight = self._flights.pop(key)
        self._next_ask_s = 0.0
        self._enqueue(self._outcomes.ended(flight, ending))
        # Trials that are already claimed and made no attempt go first.
        left = list(flight.left.values())
        self._table.move(left, State.CLAIMED)
        self._enqueue(left, first=True)

    def close(self) -> None:
        """Record results that are already durable; release all other claimed trials."""
        try:
            # If the object store is unreachable, the next run finds these results.
            with contextlib.suppress(BucketError):
                for flight in self._flights.values():
                    self._outcomes.recover(flight)
        finally:
            self._table.release(self._table.claimed)

    def _wait(self, trials: Sequence[PlannedTrial]) -> None:
        self._table.move(trials, State.WAITING)
        self._enqueue(trials)

    def _enqueue(self, trials: Sequence[PlannedTrial], *, first: bool = False) -> None:
        self._queue.add(self._packs(trials), first=first)

    def _take_over(self) -> None:
        elsewhere = self._table.trials(State.ELSEWHERE)
        if not elsewhere or time.monotonic() < self._next_poll_s:
            return
        self._next_poll_s = time.monotonic() + POLL_S
        expire_dead_owners(self._work.store)
        self._outcomes.ended_elsewhere()
        self._enqueue(self._table.claim(list(self._table.trials(State.ELSEWHERE).values())))

    def _ask_source(self) -> None:
        if self._source is None or len(self._flights) >= self._workers:
            return
        if time.monotonic() < self._next_ask_s:
            return
        busy = set(
            self._table.trials(State.RETRIED, State.HANDED_OUT, State.RUNNING, State.ELSEWHERE)
        )
        more = self._source.more(busy | self._stop_requests)
        if more is None or (self._stop_requests and not (more or busy)):
            self._source = None
            return
        # If there is nothing new, the answer changes only when a trial ends, here or in another
        # driver.
        self._next_ask_s = 0.0 if more else time.monotonic() + POLL_S
        self._wait(more)

    def _is_searched(self, trial: PlannedTrial) -> bool:
        return self._source is not None and self._source.is_searched(trial)

    def _packs(self, trials: Sequence[PlannedTrial]) -> list[Pack]:
        """Trials run alone if they ran out of memory or have later measurements (of unknown
        duration). Searched trials never run one after another, since their thresholds soon
        change."""
        lacking, together, searched, apart = self._work.lacking, [], [], []
        for trial in trials:
            alone = self.attempts.starved(trial.trial_id)
            if alone or trial.trial_id in lacking:
                names = tuple(lacking.get(trial.trial_id, ()))
                apart.append(Pack((trial,), lacking=names, alone=alone))
            elif self._is_searched(trial):
                searched.append(trial)
            else:
                together.append(trial)
        return [
            *self._cut(together, self._work.seconds_per_trial),
            *self._cut(searched, inf),
            *apart,
        ]

    def _cut(self, trials: Sequence[PlannedTrial], seconds_per_trial: float) -> list[Pack]:
        return pack(
            trials,
            slots=self.slots,
            seconds_per_trial=seconds_per_trial,
            at_once=lambda trial_id: self.attempts.most_mates(trial_id, self._work.trials_at_once),
        )

    def _without_stopped(self, trials: Sequence[PlannedTrial]) -> list[PlannedTrial]:
        self._release([trial for trial in trials if trial.trial_id in self._stop_requests])
        return [trial for trial in trials if trial.trial_id not in self._stop_requests]

    def _release(self, trials: Sequence[PlannedTrial]) -> None:
        self._table.release(trials)
        for trial in trials:
            self._listener.stopped(trial.trial_id, trial.name)

    def _claim(self, trials: Sequence[PlannedTrial]) -> list[PlannedTrial]:
        waited = self._table.trials(State.ELSEWHERE)
        claimed = self._table.claim(trials)
        if len(claimed) < len(trials):
            self._outcomes.ended_elsewhere()
            count = len(self._table.trials(State.ELSEWHERE))
            if count and not waited:
                self._listener.note(
                    f"At the end, this waits for {counted(count, 'trial')} of another command."
                )
        return claimed
