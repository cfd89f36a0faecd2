"""Connect Ray Tune to the dispatcher; watch machines, workers and stop requests."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NoReturn, TypeVar

from orchestrator.cluster import (
    Interrupt,
    address_of,
    check_ray,
    machine_here,
    machine_resources,
    nodes,
    remove_sign,
    signs,
)
from orchestrator.guard import beat, report_stopping, start_again
from orchestrator.schedule.dispatcher import Dispatcher
from orchestrator.schedule.endings import explain, kill_worker
from orchestrator.schedule.placement import Placement
from orchestrator.schedule.study_work import POLL_S, StudyWork
from orchestrator.schedule.worker_watch import WorkerWatch
from orchestrator.store import LeaseKeeper
from orchestrator.worker import (
    EVENTS,
    ORDERLY_END,
    Beat,
    Ending,
    EndingKind,
    Parcel,
)
from trainables.errors import GO_ON, KEPT, PROGRAM, UserError

T = TypeVar("T")
# A worker that does not end is killed after `KILL_S`, and Ray is restarted after `GONE_S`.
KILL_S, GONE_S = 5.0, 60.0
# Ray is restarted if it starts no worker in this time.
START_S = 300.0
# Idle workers are ended if no pack has started or ended for this time.
IDLE_S = 5.0


class Driver:
    """The methods that Ray Tune calls. They do nothing once the sweep is `stopping`."""

    def __init__(
        self,
        work: StudyWork,
        dispatcher: Dispatcher,
        placement: Placement,
        interrupt: Interrupt,
        keeper: LeaseKeeper,
        check_storage: Callable[[], None],
    ) -> None:
        self._work, self._dispatcher, self._placement = work, dispatcher, placement
        self._interrupt, self._keeper, self._check_storage = interrupt, keeper, check_storage
        self._error: Exception | None = None
        self._parcels: dict[str, Parcel] = {}
        self._watch = WorkerWatch(work.options.trial_timeout_s)
        self._stalls: dict[str, Ending] = {}
        self._refusals: dict[str, str] = {}
        """Reasons of machines that cannot run the trials, by Ray's node id."""
        self._next_poll_s = self._last_change_s = 0.0
        self._polls_without_start = 0
        self._waits_for_machines = self._stop_announced = False

    @property
    def stopping(self) -> bool:
        """True after a signal or an error."""
        return self._interrupt.requested or self._error is not None

    @property
    def finished(self) -> bool:
        """True if no further pack will run."""
        return self.stopping or self._dispatcher.finished

    @property
    def has_idle_workers(self) -> bool:
        """True if no pack has started or ended for `IDLE_S`.

        Tune gives a worker at once to a waiting pack with the same request. After this time, only
        packs with other requests or of other drivers wait for the machine of an idle worker.
        """
        return time.monotonic() - self._last_change_s > IDLE_S

    def raise_error(self) -> None:
        """Raise the error that stopped the sweep, if any."""
        if self._error is not None:
            raise self._error

    def next_pack(self, key: str) -> Parcel | None:
        """Return the next pack under the name `key`, or None if no pack is ready.

        Polls while no pack runs, because Ray Tune then does not call `poll`.
        """
        if self._parcels:
            beat()
        else:
            self.poll()
        return self._guarded(lambda: self._next_pack(key))

    def start_pack(self, key: str) -> None:
        """Start to watch the worker of pack `key`."""
        self._polls_without_start = 0
        self._last_change_s = time.monotonic()
        self._watch.add(key)

    def process_events(self, key: str, text: str, machine: str) -> None:
        """Process the events (JSON) that the worker of pack `key` sent from `machine`."""
        self._guarded(
            lambda: self._dispatcher.process_events(key, EVENTS.validate_json(text), machine)
        )

    def end_pack(self, key: str, ending: Ending = ORDERLY_END) -> None:
        """Process the end of pack `key`."""
        self._guarded(lambda: self._end_pack(key, ending))

    def poll(self) -> list[str]:
        """Return the keys of packs to end.

        Checks the lease at each call, and the cluster and the store every 2 s.
        """
        beat()
        if self._interrupt.requested and not self._stop_announced:
            self._stop_announced = True
            self._work.listener.note(f"Stopping, which may take 10 s; {KEPT}.")
            report_stopping()
        ending_keys = self._guarded(self._poll)
        self._dispatcher.show()
        return ending_keys or []

    def _guarded(self, action: Callable[[], T]) -> T | None:
        # Check the lease first: a driver without a lease could record another driver's trials.
        if self.stopping:
            return None
        try:
            self._keeper.check(len(self._dispatcher.claimed_trials))
            return action()
        except Exception as error:
            self._error = error
            return None

    def _next_pack(self, key: str) -> Parcel | None:
        pack = self._dispatcher.next_pack(key)
        if pack is None:
            return None
        request = self._placement.request(
            [trial.validated for trial in pack.trials], alone=pack.alone
        )
        self._parcels[key] = Parcel(key, pack, request)
        return self._parcels[key]

    def _end_pack(self, key: str, ending: Ending) -> None:
        self._parcels.pop(key).empty()
        self._last_change_s = time.monotonic()
        if ending.kind is EndingKind.MACHINE_UNFIT and ending.machine is not None:
            self._refusals[ending.machine] = ending.cause
            self._look_at_machines()
        if key in self._watch.keys:
            ending = self._explain(key, ending)
            self._watch.remove(key)
            remove_sign(key)
        self._dispatcher.end_pack(key, ending)

    def _explain(self, key: str, ending: Ending) -> Ending:
        stall = self._stalls.pop(key, None)
        if stall is not None and ending.kind is not EndingKind.MACHINE_LEFT:
            return stall
        last_beat = (_beats([key]) or {}).get(key) if ending.died else None
        trial_id = next(iter(self._dispatcher.open_ids(key)), None)
        return explain(ending, last_beat, trial_id, machine_here())

    def _poll(self) -> list[str]:
        is_due = time.monotonic() >= self._next_poll_s
        if is_due or self._placement.bad != self._dispatcher.failures.bad_machines.keys():
            self._next_poll_s = time.monotonic() + POLL_S
            self._check_storage()
            self._look_at_machines()
            self._look_at_requests()
            self._look_at_workers()
            self._look_at_starts()
        keys_without_machine = [
            key for key, parcel in self._parcels.items() if not self._placement.fits(parcel.request)
        ]
        stalls = self._watch.stalls()
        self._stalls |= stalls
        ending_keys = [
            *self._dispatcher.give_up(keys_without_machine, self._placement.excluded),
            *stalls,
        ]
        for key in ending_keys:
            self._watch.mark_ending(key)
        return ending_keys

    def _look_at_workers(self) -> None:
        keys = self._watch.keys
        beats = _beats(keys) if keys else {}
        if beats is None:
            return
        self._watch.update(time.monotonic(), beats)
        for heartbeat in self._watch.overdue_beats(KILL_S):
            kill_worker(heartbeat, machine_here())
        if self._watch.overdue_beats(GONE_S):
            start_again_or_raise("A hanging worker cannot be ended")

    def _look_at_starts(self) -> None:
        # Restart Ray only if this command started it: a shared cluster may be busy.
        self._polls_without_start = (
            self._polls_without_start + 1 if self._dispatcher.waits_for_a_start else 0
        )
        waited_s = self._polls_without_start * POLL_S
        if waited_s > START_S and self._work.options.address is None:
            start_again_or_raise(f"Ray has started no worker for {START_S:g} s")

    def _look_at_machines(self) -> None:
        check_ray()
        machines = nodes()
        excluded, bad_machines = self._placement.excluded, self._dispatcher.failures.bad_machines
        self._placement.update(machine_resources(machines), self._refusals, bad_machines)
        for machine in self._placement.excluded - excluded:
            self._work.listener.note((self._refusals | bad_machines)[machine])
        self._dispatcher.attempts.recount_losses(set(map(address_of, machines)))
        slots, old_slots = self._placement.slots, self._dispatcher.slots
        note = self._work.listener.note
        if slots is None and not self._waits_for_machines:
            note("There is no machine with room for a trial. Waiting for one.")
        self._waits_for_machines = slots is None
        if slots is not None and slots != old_slots:
            note(f"Machines joined or left. Trials at a time: now {slots}, before {old_slots}.")
            self._dispatcher.resize(slots)

    def _look_at_requests(self) -> None:
        requests = self._work.store.requests(self._work.study, self._work.run_id)
        if requests.stop_study:
            self._work.listener.note(f"Stopping, as requested by `{PROGRAM} stop`.")
            self._interrupt.requested = True
        else:
            self._dispatcher.stop(requests.stop_trials)


def _beats(keys: Sequence[str]) -> dict[str, Beat] | None:
    texts = signs(keys)
    return (
        None
        if texts is None
        else {key: Beat.model_validate_json(text) for key, text in texts.items()}
    )


def start_again_or_raise(reason: str) -> NoReturn:
    """Let the guard (the parent process) restart this command. Raise UserError without one."""
    start_again(reason)
    raise UserError(f"{reason}: {GO_ON}")
