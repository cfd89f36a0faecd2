"""What runs in a worker process: the trials of one pack, one after another, each one's trouble its own."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ray import tune

from orchestrator.assignment import Assignment
from orchestrator.events import DISK_TROUBLES, EVENTS, TrialEvent
from orchestrator.preflight import versions
from trainables.any_config import AnyConfig
from trainables.errors import UserError
from trainables.failures import cause_of
from trainables.fence import SupersededError
from trainables.outcome import EpochMetrics, TrialOutcome
from trainables.runtime import Runtime, trial_directory

REPORT_EVERY_S = 0.5
"""A report makes the worker wait for the driver, so it reports no more often, but for the start and end of trials
that last longer than this."""


class RunTrial(Protocol):
    """What `trainables.trial.run_trial` does: run one trial, leave its result as a file, return it."""

    def __call__(
        self,
        config: Any,  # an AnyConfig; a stand-in may take fewer kinds
        *,
        directory: Path,
        runtime: Runtime,
        measurements: Sequence[str],
        on_epoch: Callable[[EpochMetrics], None],
        stop_above: Mapping[int, float] | None,
    ) -> TrialOutcome: ...


@dataclass(frozen=True, kw_only=True)
class Job:
    """What is the same for all packs of a sweep."""

    storage: Path
    runtime: Runtime
    measurements: tuple[str, ...]
    run_trial: RunTrial | None
    """None: `trainables.trial.run_trial`, imported in the worker so that the driver needs no torch."""
    marker: Path | None = None
    """A file that lies in the storage for as long as the sweep runs. A machine that joined after the preflight and does
    not see it, or has not `versions`, must not take up a trial. None: the only machine is the driver's own."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """`orchestrator.preflight.versions` of the driver."""


class BrokenProcessError(Exception):
    """This process can run no further trial; the driver hands the rest of the pack to another one."""


class _DiskError(Exception):
    """A write failed for the disk's sake; the text is one of `DISK_TROUBLES`."""


def cuda_problem() -> str | None:
    """Why torch could not train on this process' GPU, and what to do; None where it could."""
    import torch

    if torch.cuda.is_available():
        return None
    if torch.version.cuda is None:
        return f"the installed torch {torch.__version__} has no CUDA support: install a build of torch for CUDA"
    return (
        f"torch {torch.__version__} finds none that it can use: see that nvidia-smi lists it and that the driver is "
        f"new enough for CUDA {torch.version.cuda}"
    )


def make_trainable(job: Job) -> Callable[[dict[str, Any]], None]:
    """The function that Ray Tune runs: its config holds a `Parcel` under "pack"."""

    def run(config: dict[str, Any]) -> None:
        _refuse_strange_machine(job)
        run_pack(config["pack"].open(), job, lambda text: tune.report({"events": text}))

    return run


def _refuse_strange_machine(job: Job) -> None:
    """Raise BrokenProcessError on a machine that is not like the driver's: what it computed could not be used."""
    if job.marker is None:
        return
    host = socket.gethostname()
    if not job.marker.exists():
        raise BrokenProcessError(f"the machine {host} does not share the storage folder {job.storage}")
    if versions() != job.versions:
        raise BrokenProcessError(f"the machine {host} has {versions()}, and the driver {dict(job.versions)}")


def run_pack(assignment: Assignment, job: Job, send: Callable[[str], None]) -> None:
    """Run the assigned trials in their order and send their events, several in one message where trials are short.

    Raises BrokenProcessError, with the rest of the pack not started, where no trial could run any more.
    """
    os.environ["OMP_NUM_THREADS"] = str(job.runtime.threads)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(job.runtime.threads)
    run_trial = job.run_trial or _default_run_trial()
    outbox = _Outbox(send)
    was_long = True
    for config in assignment.configs:
        start_s = time.monotonic()
        outbox.add(TrialEvent(trial_id=config.trial_id), now=was_long)
        try:
            outcome = _run_one(run_trial, config, job, outbox, assignment.stop_above)
        except _DiskError as error:
            outbox.add(TrialEvent(trial_id=config.trial_id, disk=str(error)), now=True)
            raise BrokenProcessError(f"the disk {error}") from error
        was_long = time.monotonic() - start_s >= REPORT_EVERY_S
        # Sent together with the next trial's start: one message, and the driver knows what runs if we die.
        outbox.hold(TrialEvent(trial_id=config.trial_id, outcome=outcome))
        if _gpu_is_lost(outcome):
            outbox.flush()
            raise BrokenProcessError(outcome.cause)
    outbox.flush()


def _default_run_trial() -> RunTrial:
    from trainables.trial import run_trial

    return run_trial


def _run_one(
    run_trial: RunTrial, config: AnyConfig, job: Job, outbox: _Outbox, stop_above: Mapping[int, float] | None
) -> TrialOutcome:
    """The trial's outcome; whatever it raises becomes a failed one, with the traceback in its folder's error.log.

    Raises _DiskError where the disk takes nothing more, and BrokenProcessError where another worker has taken the trial
    over: neither is a trial's failure.
    """
    directory = trial_directory(job.storage, config.trial_id)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        return run_trial(
            config,
            directory=directory,
            runtime=job.runtime,
            measurements=job.measurements,
            on_epoch=lambda metrics: outbox.add(TrialEvent(trial_id=config.trial_id, epoch=metrics)),
            stop_above=stop_above,
        )
    except SupersededError as error:
        raise BrokenProcessError(str(error)) from error
    except UserError as error:
        cause = str(error)
    except OSError as error:
        if error.errno in DISK_TROUBLES:
            raise _DiskError(DISK_TROUBLES[error.errno]) from error
        cause = cause_of(error, directory, job.runtime.layer_files)
    except (Exception, SystemExit) as error:  # any trouble is this trial's alone; it is reported, not swallowed
        cause = cause_of(error, directory, job.runtime.layer_files)
    return TrialOutcome(trial_id=config.trial_id, state="failed", cause=cause)


def _gpu_is_lost(outcome: TrialOutcome) -> bool:
    """True after an error that leaves the process' CUDA context unusable (running out of memory does not)."""
    cause = outcome.cause or ""
    return outcome.state == "failed" and "CUDA error" in cause and "out of memory" not in cause


class _Outbox:
    """Collects events and sends them together."""

    def __init__(self, send: Callable[[str], None]) -> None:
        self._send = send
        self._events: list[TrialEvent] = []
        self._sent_s = time.monotonic()

    def hold(self, event: TrialEvent) -> None:
        """Keep an event for the next message."""
        self._events.append(event)

    def add(self, event: TrialEvent, *, now: bool = False) -> None:
        """Keep an event, and send all of them if the last message is long enough ago, or `now`."""
        self._events.append(event)
        if now or time.monotonic() - self._sent_s >= REPORT_EVERY_S:
            self.flush()

    def flush(self) -> None:
        """Send what is there; returns once the driver has taken it."""
        if self._events:
            self._send(EVENTS.dump_json(tuple(self._events)).decode())
            self._events.clear()
        self._sent_s = time.monotonic()
