"""What runs in a worker process: the trials of one pack, one after another, each one's trouble its own."""

from __future__ import annotations

import errno
import importlib
import os
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from orchestrator.cluster import RunOptions
from orchestrator.storage import DISK_TROUBLES, BucketError, on_this_machine
from orchestrator.store import PlannedTrial
from orchestrator.worker.messages import EVENTS, Pack, TrialEvent
from trainables.errors import KEPT, UserError
from trainables.pulse import PULSE
from trainables.runtime import Runtime
from trainables.trial_folder import SupersededError, TrialFolder, TrialOutcome, UnreadableFileError

REPORT_EVERY_S = 0.5
"""A report makes the worker wait for the driver, so it reports no more often, but for the start and end of trials
that last longer than this."""


@dataclass(frozen=True, kw_only=True)
class TrialFunctions:
    """What is done with a trial, as `run_trial` and `measure_kept` of `trainables.trial` do it. None: these, imported
    in the worker so that the driver needs no torch; any other must be importable there."""

    run_trial: Callable[..., TrialOutcome] | None = None
    measure_kept: Callable[..., object] | None = None


@dataclass(frozen=True, kw_only=True)
class Job:
    """What is the same for all packs of a sweep."""

    options: RunOptions
    measurements: tuple[str, ...]
    functions: TrialFunctions


class BrokenProcessError(Exception):
    """This process can run no further trial; the driver hands the rest of the pack to another one."""


class MemoryShortageError(BrokenProcessError):
    """The trial that it was at asked for memory that there was not."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class _HaltError(BrokenProcessError):
    """No process can: see `TrialEvent.halt`."""


def run_pack(pack: Pack, job: Job, send: Callable[[str], None], running: Callable[[str], None] | None = None) -> None:
    """Train or measure the trials in their order and send their events, several in one message where trials are short.

    `running` is told the name of the trial that runs, after every message again: with each one, Ray calls this process
    by its own function.
    Raises BrokenProcessError, with the rest of the pack not started, where no trial could run any more.
    """
    os.environ["OMP_NUM_THREADS"] = str(job.options.runtime.threads)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(job.options.runtime.threads)
    outbox = _Outbox(send, running)
    place = _place(job.options.runtime.device)
    was_long = True
    for trial in pack.trials:
        outbox.running = trial.name
        PULSE.begin(trial.trial_id)
        start_s = time.monotonic()
        outbox.add(TrialEvent(trial_id=trial.trial_id, place=place), now=was_long)
        try:
            outcome = _outcome(trial, pack, job, outbox)
        except BrokenProcessError as error:
            if isinstance(error, _HaltError):
                outbox.hold(TrialEvent(trial_id=trial.trial_id, halt=str(error)))
            outbox.flush()
            raise
        was_long = time.monotonic() - start_s >= REPORT_EVERY_S
        # Sent together with the next trial's start: one message, and the driver knows what runs if we die.
        outbox.hold(TrialEvent(trial_id=trial.trial_id, outcome=outcome))
        if outcome.state == "failed":
            # It leaves no file by which the driver could tell it from the next one, should that hang or kill us.
            outbox.flush()
            if _gpu_is_lost(job.options.runtime):
                raise BrokenProcessError(outcome.cause)
    outbox.flush()


def _place(device: str) -> str:
    """This machine, and the GPU that Ray gave this process."""
    host = socket.gethostname()
    return f"{host}, GPU {os.environ.get('CUDA_VISIBLE_DEVICES', '?')}" if device.startswith("cuda") else host


def _outcome(trial: PlannedTrial, pack: Pack, job: Job, outbox: _Outbox) -> TrialOutcome:
    """The trial's outcome; whatever it raises becomes a failed one, with the traceback in its folder's error.log.

    Raises _HaltError where the disk takes nothing more, or the storage fails or is gone, BrokenProcessError where
    another worker has taken the trial over: neither is a trial's failure. And MemoryShortageError, since in a process
    of its own, alone on a machine, the trial may have enough.
    """
    short_of_memory = False
    try:
        runtime = on_this_machine(job.options.runtime, job.options.data)
        with job.options.storage.working(trial.trial_id) as folder:
            cause: str | None
            try:
                return _run(trial, pack, job, folder, runtime, outbox)
            except UnreadableFileError as error:
                text = job.options.storage.in_words_of_user(str(error), folder)
                raise _HaltError(f"{text}; {KEPT}") from error
            except UserError as error:
                short_of_memory = _asks_for_memory(error)
                cause = job.options.storage.in_words_of_user(str(error), folder)
                folder.log(f"failed: {cause}")
            except (Exception, SystemExit) as error:  # any trouble is this trial's alone; it is reported, not swallowed
                if isinstance(error, SupersededError) or _disk_trouble(error):
                    raise
                short_of_memory = _asks_for_memory(error)
                cause = folder.failure_cause(error, runtime.layer_files)
    except SupersededError as error:
        raise BrokenProcessError(str(error)) from error
    except BucketError as error:
        raise _HaltError(f"{error}; {KEPT}") from error
    except UserError as error:
        raise _HaltError(str(error).rstrip(".")) from error
    except OSError as error:
        trouble = _disk_trouble(error)
        if trouble is not None:
            place = job.options.storage.work_folder
            raise _HaltError(f"The disk of {place} {trouble} and type the same command again; {KEPT}") from error
        cause = f"{type(error).__name__}: {error}"
    if short_of_memory:
        raise MemoryShortageError(cause)
    return TrialOutcome(trial_id=trial.trial_id, state="failed", cause=cause)


def _run(
    trial: PlannedTrial, pack: Pack, job: Job, folder: TrialFolder, runtime: Runtime, outbox: _Outbox
) -> TrialOutcome:
    """Train the trial, or measure it where that is assigned."""

    def note(text: str) -> None:
        outbox.add(TrialEvent(trial_id=trial.trial_id, note=job.options.storage.in_words_of_user(text, folder)))

    if pack.lacking:
        measure = job.functions.measure_kept or _of_trainables("measure_kept")
        measure(trial.validated, directory=folder.path, runtime=runtime, names=pack.lacking, note=note)
        return TrialOutcome(trial_id=trial.trial_id, state="done")
    folder.path.mkdir(parents=True, exist_ok=True)
    run_trial: Callable[..., TrialOutcome] = job.functions.run_trial or _of_trainables("run_trial")
    return run_trial(
        trial.validated,
        directory=folder.path,
        runtime=runtime,
        measurements=job.measurements,
        on_epoch=lambda metrics: outbox.add(TrialEvent(trial_id=trial.trial_id, epoch=metrics)),
        stop_above=pack.stop_above,
        note=note,
    )


def _of_trainables(name: str) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(importlib.import_module("trainables.trial"), name)
    return function


def _disk_trouble(error: BaseException) -> str | None:
    return DISK_TROUBLES.get(error.errno or 0) if isinstance(error, OSError) else None


def _asks_for_memory(error: BaseException) -> bool:
    """Whether the error, or the one behind it, says that there is too little memory, of the machine or of its GPU."""
    return (
        isinstance(error, MemoryError)
        or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
        # torch's own, for a GPU, and what it raises for the machine.
        or type(error).__name__ == "OutOfMemoryError"
        or (isinstance(error, RuntimeError) and "can't allocate memory" in str(error))
        or (error.__cause__ is not None and _asks_for_memory(error.__cause__))
    )


def _gpu_is_lost(runtime: Runtime) -> bool:
    """True after an error that leaves the process' CUDA context unusable (running out of memory does not)."""
    torch = sys.modules.get("torch")
    if torch is None or not runtime.device.startswith("cuda"):
        return False
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False


class _Outbox:
    """Collects events and sends them together. `running` is the name of the trial whose events they are.

    What an output layer has forked from this process, and comes to speak here, ends.
    """

    def __init__(self, send: Callable[[str], None], tell: Callable[[str], None] | None) -> None:
        self._send, self._tell = send, tell
        self.running = ""
        self._events: list[TrialEvent] = []
        self._sent_s = time.monotonic()
        self._pid = os.getpid()

    def hold(self, event: TrialEvent) -> None:
        """Keep an event for the next message."""
        if os.getpid() != self._pid:
            os._exit(0)
        self._events.append(event)

    def add(self, event: TrialEvent, *, now: bool = False) -> None:
        """Keep an event, and send all of them if the last message is long enough ago, or `now`."""
        self.hold(event)
        if now or time.monotonic() - self._sent_s >= REPORT_EVERY_S:
            self.flush()

    def flush(self) -> None:
        """Send what is there; returns once the driver has taken it."""
        if os.getpid() != self._pid:
            os._exit(0)
        if self._events:
            self._send(EVENTS.dump_json(tuple(self._events)).decode())
            self._events.clear()
            if self._tell is not None:
                self._tell(self.running)
        self._sent_s = time.monotonic()
