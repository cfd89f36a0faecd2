"""What runs in a worker process: the trials of one pack, one after another, each one's trouble its own."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import ray
from ray import tune
from ray._raylet import setproctitle  # type: ignore[attr-defined]  # Ray's extension module has no types

from orchestrator.cluster.faults import faults
from orchestrator.cluster.preflight import Findings, Question, look
from orchestrator.cluster.run_options import RunOptions
from orchestrator.storage.data_folder import on_this_machine
from orchestrator.storage.disk import DISK_TROUBLES
from orchestrator.worker.assignment import Assignment
from orchestrator.worker.messages import EVENTS, TrialEvent
from trainables.config.kinds import AnyConfig
from trainables.errors import UserError
from trainables.runtime import Runtime
from trainables.trial_folder.folder import SupersededError, TrialFolder
from trainables.trial_folder.outcome import EpochMetrics, TrialOutcome

REPORT_EVERY_S = 0.5
"""A report makes the worker wait for the driver, so it reports no more often, but for the start and end of trials
that last longer than this."""


class RunTrial(Protocol):
    """What `trainables.trial.trial_run.run_trial` does: run one trial, leave its result as a file, return it."""

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

    title: str
    """What the dashboard calls the workers."""
    options: RunOptions
    measurements: tuple[str, ...]
    run_trial: RunTrial | None
    """None: `trainables.trial.trial_run.run_trial`, imported in the worker so that the driver needs no torch."""

    question: Question | None = None
    """What the machines of a cluster were asked before any trial started; None where no machine can join."""
    asked: frozenset[str] = frozenset()
    """Those that were, by Ray's ids: any other one asks itself."""


class BrokenProcessError(Exception):
    """This process can run no further trial; the driver hands the rest of the pack to another one."""


class UnfitMachineError(Exception):
    """No pack must run on this machine: Ray's id of it, and why."""

    def __init__(self, machine: str, why: str) -> None:
        super().__init__(machine, why)
        self.machine, self.why = machine, why


class _DiskError(Exception):
    """A write failed for the disk's sake; the text is one of `DISK_TROUBLES`."""


def make_trainable(job: Job) -> Callable[[dict[str, Any]], None]:
    """The function that Ray Tune runs: its config holds a `Parcel` under "pack"."""

    def run(config: dict[str, Any]) -> None:
        _refuse_unfit_machine(job)
        run_pack(config["pack"].open(), job, lambda text: tune.report({"events": text}), _call_this_process)

    run.__name__ = job.title
    return run


def _call_this_process(name: str) -> None:
    """Give this process the name under which the dashboard and ps show it."""
    setproctitle(f"ray::{name}")


def _refuse_unfit_machine(job: Job) -> None:
    """Raise UnfitMachineError on a machine that joined later and could not run the trials."""
    machine = ray.get_runtime_context().get_node_id()
    if job.question is None or machine in job.asked:
        return
    address = str(ray.util.get_node_ip_address())  # type: ignore[no-untyped-call]  # Ray has no type for it
    problems = faults(job.question, {address: _of_this_machine(job.question.model_dump_json())}, {})
    if problems:
        raise UnfitMachineError(machine, " ".join(problems))


@cache
def _of_this_machine(question: str) -> Findings:
    return Findings.model_validate_json(look(question))


def run_pack(
    assignment: Assignment, job: Job, send: Callable[[str], None], running: Callable[[str], None] | None = None
) -> None:
    """Run the assigned trials in their order and send their events, several in one message where trials are short.

    `running` is told the name of the trial that runs, after every message again: with each one, Ray calls this process
    by its own function.
    Raises BrokenProcessError, with the rest of the pack not started, where no trial could run any more.
    """
    os.environ["OMP_NUM_THREADS"] = str(job.options.runtime.threads)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(job.options.runtime.threads)
    run_trial = job.run_trial or _default_run_trial()
    outbox = _Outbox(send, running)
    was_long = True
    for config, name in zip(assignment.configs, assignment.names, strict=True):
        outbox.running = name
        start_s = time.monotonic()
        outbox.add(TrialEvent(trial_id=config.trial_id), now=was_long)
        try:
            outcome = _run_one(run_trial, config, job, outbox, assignment.stop_above)
        except _DiskError as error:
            outbox.add(TrialEvent(trial_id=config.trial_id, disk=str(error)), now=True)
            raise BrokenProcessError(f"the disk {error}") from error
        except UserError as error:
            outbox.add(TrialEvent(trial_id=config.trial_id, bucket=str(error)), now=True)
            raise BrokenProcessError(str(error)) from error
        was_long = time.monotonic() - start_s >= REPORT_EVERY_S
        # Sent together with the next trial's start: one message, and the driver knows what runs if we die.
        outbox.hold(TrialEvent(trial_id=config.trial_id, outcome=outcome))
        if _gpu_is_lost(outcome):
            outbox.flush()
            raise BrokenProcessError(outcome.cause)
    outbox.flush()


def _default_run_trial() -> RunTrial:
    from trainables.trial.trial_run import run_trial

    return run_trial


def _run_one(
    run_trial: RunTrial, config: AnyConfig, job: Job, outbox: _Outbox, stop_above: Mapping[int, float] | None
) -> TrialOutcome:
    """The trial's outcome; whatever it raises becomes a failed one, with the traceback in its folder's error.log.

    Raises _DiskError where the disk takes nothing more, UserError where the object store fails, and BrokenProcessError
    where another worker has taken the trial over: none of them is a trial's failure.
    """
    try:
        runtime = on_this_machine(job.options.runtime, job.options.data)
        job = replace(job, options=replace(job.options, runtime=runtime))
        with job.options.storage.working(config.trial_id) as folder:
            return _attempt(run_trial, config, folder, job, outbox, stop_above)
    except SupersededError as error:
        raise BrokenProcessError(str(error)) from error
    except OSError as error:
        if error.errno in DISK_TROUBLES:
            raise _DiskError(DISK_TROUBLES[error.errno]) from error
        return TrialOutcome(trial_id=config.trial_id, state="failed", cause=f"{type(error).__name__}: {error}")


def _attempt(
    run_trial: RunTrial,
    config: AnyConfig,
    folder: TrialFolder,
    job: Job,
    outbox: _Outbox,
    stop_above: Mapping[int, float] | None,
) -> TrialOutcome:
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
        return run_trial(
            config,
            directory=folder.path,
            runtime=job.options.runtime,
            measurements=job.measurements,
            on_epoch=lambda metrics: outbox.add(TrialEvent(trial_id=config.trial_id, epoch=metrics)),
            stop_above=stop_above,
        )
    except SupersededError as error:
        raise BrokenProcessError(str(error)) from error
    except UserError as error:
        cause = job.options.storage.in_words_of_user(str(error), folder)
    except OSError as error:
        if error.errno in DISK_TROUBLES:
            raise _DiskError(DISK_TROUBLES[error.errno]) from error
        cause = folder.failure_cause(error, job.options.runtime.layer_files)
    except (Exception, SystemExit) as error:  # any trouble is this trial's alone; it is reported, not swallowed
        cause = folder.failure_cause(error, job.options.runtime.layer_files)
    return TrialOutcome(trial_id=config.trial_id, state="failed", cause=cause)


def _gpu_is_lost(outcome: TrialOutcome) -> bool:
    """True after an error that leaves the process' CUDA context unusable (running out of memory does not)."""
    cause = outcome.cause or ""
    return outcome.state == "failed" and "CUDA error" in cause and "out of memory" not in cause


class _Outbox:
    """Collects events and sends them together. `running` is the name of the trial whose events they are."""

    def __init__(self, send: Callable[[str], None], tell: Callable[[str], None] | None) -> None:
        self._send, self._tell = send, tell
        self.running = ""
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
            if self._tell is not None:
                self._tell(self.running)
        self._sent_s = time.monotonic()
