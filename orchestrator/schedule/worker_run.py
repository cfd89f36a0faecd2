"""Run trials on this machine without Ray, next to other workers that share the storage."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from math import prod
from multiprocessing import Pipe
from pathlib import Path

from typing_extensions import override

import orchestrator
from orchestrator.cluster import Interrupt, interruptible, scratch_folder
from orchestrator.guard import beat, watched
from orchestrator.schedule.dispatcher import Dispatcher
from orchestrator.schedule.endings import explain
from orchestrator.schedule.study_work import POLL_S, RunSummary, StudyWork
from orchestrator.schedule.worker_watch import WorkerWatch
from orchestrator.storage import Storage
from orchestrator.store import LeaseKeeper, PlannedTrial, this_owner
from orchestrator.watch import Listener, Several
from orchestrator.worker import EVENTS, ORDERLY_END, PACK, Beat, Ending, EndingKind, Job, Pack
from trainables.errors import UserError
from trainables.trial_folder import LEASE_S, DamagedFileError, TrialOutcome

LOOK_S = 0.5
KEY = "the pack"
"""Name of the only pack at a time."""
# In this time a dead worker's fence grows old, so its trial becomes free.
IDLE_S = 1.5 * LEASE_S


def run_here(trials: Sequence[PlannedTrial], work: StudyWork) -> RunSummary:
    """Run registered trials in one worker process; return when all have ended.

    Skips trials that other workers run, and returns when they run all that is left. Writes failures
    to the trials' folders, so that other workers skip these trials. Raises UserError if the disk
    fails, or if trials keep failing.
    """
    options, owner = work.options, this_owner()
    work = replace(work, listener=Several(work.listener, _FailureFiles(options.storage)))
    with ExitStack() as exits:
        exits.enter_context(watched())
        interrupt = exits.enter_context(interruptible())
        keeper = exits.enter_context(LeaseKeeper(work.store, owner))
        check_storage = exits.enter_context(options.storage.watched())
        dispatcher = Dispatcher(trials, work, owner, slots=_worker_count())
        exits.enter_context(closing(dispatcher))
        temporary = exits.enter_context(scratch_folder())
        worker = exits.enter_context(closing(_Worker(work.job, dispatcher, interrupt, temporary)))
        next_check_s = time.monotonic()
        while not (dispatcher.finished or interrupt.requested):
            beat()
            keeper.check(len(dispatcher.claimed_trials))
            if time.monotonic() >= next_check_s:
                next_check_s = time.monotonic() + POLL_S
                check_storage()
            if not worker.step() and time.monotonic() - worker.worked_s > IDLE_S:
                work.listener.note("Other workers run the remaining trials. This worker ends.")
                break
            for sentence in dispatcher.failures.bad_machines.values():
                raise UserError(sentence)
            dispatcher.show()
    return RunSummary(interrupted=interrupt.requested)


class _FailureFiles(Listener):
    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    @override
    def finished(self, name: str, outcome: TrialOutcome) -> None:
        folder = self._storage.trial(outcome.trial_id)
        # If the file cannot be written, another worker tries the trial again.
        with suppress(OSError, DamagedFileError):
            if outcome.state == "failed" and folder.result() is None and not folder.in_use():
                folder.path.mkdir(parents=True, exist_ok=True)
                folder.write_result(outcome, None)


def _worker_count() -> int:
    """Return the number of workers in this Slurm array; 1 outside of Slurm."""
    names = ("SLURM_ARRAY_TASK_COUNT", "SLURM_NTASKS")
    return prod(int(os.environ.get(name, 1)) for name in names)


class _Worker:
    """Runs the dispatcher's packs in a child process, and watches its progress."""

    def __init__(
        self, job: Job, dispatcher: Dispatcher, interrupt: Interrupt, temporary: Path
    ) -> None:
        self._job, self._dispatcher, self._interrupt = job, dispatcher, interrupt
        paths = [str(Path(orchestrator.__file__).parents[1]), *sys.path]
        self._variables = {"PYTHONPATH": os.pathsep.join(paths), "TMPDIR": str(temporary)}
        self._process: subprocess.Popen[bytes] | None = None
        self._is_running = False
        self._beat: Beat | None = None
        self.worked_s = time.monotonic()
        """Time at which a trial last ended here."""

    def step(self) -> bool:
        """Start a pack or process messages; return whether a pack runs."""
        if not self._is_running:
            pack = self._dispatcher.next_pack(KEY)
            if pack is None:
                time.sleep(LOOK_S)
                return False
            self._start(pack)
        try:
            while self._link.poll(LOOK_S) and not self._interrupt.requested:
                self._process_message(self._link.recv())
                if not self._is_running:
                    return True
        except (EOFError, OSError):
            time.sleep(LOOK_S)  # a signal to all processes may reach this one last
            if not self._interrupt.requested:
                self._end(Ending(EndingKind.PROCESS_DIED))
            return True
        self._watch.update(time.monotonic(), {KEY: self._beat} if self._beat else {})
        for stall in self._watch.stalls().values():
            self._end(stall)
        return True

    def _start(self, pack: Pack) -> None:
        self._is_running = True
        self._watch = WorkerWatch(self._job.options.trial_timeout_s)
        self._watch.add(KEY)
        if self._process is None:
            self._link, link = Pipe()
            with link:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "orchestrator.worker.process", str(link.fileno())],
                    pass_fds=[link.fileno()],
                    env=os.environ | self._variables,
                    stdin=subprocess.DEVNULL,
                    stdout=2,  # events are on standard output
                )
            self._link.send(self._job)
        self._link.send_bytes(PACK.dump_json(pack))

    def _process_message(self, message: bytes | str | Ending) -> None:
        match message:
            case bytes():
                self._beat = Beat.model_validate_json(message)
            case str():
                events = EVENTS.validate_json(message)
                self._dispatcher.process_events(KEY, events)
                if any(event.outcome is not None for event in events):
                    self.worked_s = time.monotonic()
            case Ending():
                self._end(message)

    def _end(self, ending: Ending) -> None:
        if ending != ORDERLY_END:
            ids = self._dispatcher.open_ids(KEY)
            ending = explain(ending, self._beat, next(iter(ids), None), "")
            self._kill()
            self.worked_s = time.monotonic()
        self._is_running = False
        self._dispatcher.end_pack(KEY, ending)

    def close(self) -> None:
        """End the process and drop the fences of its trials, which other hosts may then take."""
        self._kill()
        for trial_id in self._dispatcher.open_ids(KEY) if self._is_running else ():
            fence = self._job.options.storage.trial(trial_id).fence
            holder = fence.holder()
            if holder is not None and holder.worker == self._job.options.runtime.worker:
                fence.drop()

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._link.close()
        self._process = self._beat = None
