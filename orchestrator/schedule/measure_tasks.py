"""Later measurements as Ray tasks: one a trial, on the resources of the sweep, nothing trained.

A worker leaves each measurement as a file in the trial's folder; the driver records the files. A worker that dies, or
a driver, loses at most the measurement that it was at.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import ray
from ray.exceptions import OutOfMemoryError, RayError, WorkerCrashedError

from orchestrator.cluster.connection import check_cluster, connected
from orchestrator.cluster.interrupt import Interrupt
from orchestrator.cluster.machines import check_machines, marked, nodes, resources
from orchestrator.cluster.resources import check_options, per_pack
from orchestrator.cluster.run_options import RunOptions
from orchestrator.schedule.other_drivers import POLL_S
from orchestrator.schedule.placement import Placement, configs_of
from orchestrator.schedule.recording import record_later
from orchestrator.schedule.steering import obey
from orchestrator.schedule.study_work import LOW_MEMORY, PROCESS_DIED, LaterSummary, StudyWork
from orchestrator.storage.bucket import BucketError, patiently
from orchestrator.storage.data_folder import on_this_machine
from orchestrator.storage.disk import DISK_TROUBLES
from orchestrator.store.records import PlannedTrial
from orchestrator.store.store import Store
from orchestrator.watch.listener import Listener
from orchestrator.worker.pack_run import Job
from trainables.config.kinds import AnyConfig, read_config
from trainables.errors import UserError, last_line
from trainables.runtime import Runtime
from trainables.trial_folder.folder import TrialFolder
from trainables.trial_folder.outcome import TrialOutcome

LOOK_S = 0.2
"""How often the driver looks whether it was interrupted."""


class MeasureKept(Protocol):
    """What `trainables.trial.measure_kept.measure_kept` does: leave each measurement as a file."""

    def __call__(self, config: Any, *, directory: Path, runtime: Runtime, names: Sequence[str]) -> object: ...


@dataclass(frozen=True, kw_only=True)
class _Answer:
    """How a task ended: well, or why not."""

    cause: str | None = None
    disk: str | None = None
    """One of `DISK_TROUBLES`: any other trial would meet it too."""
    bucket: str | None = None
    """What is amiss with the object store."""


def run_later(
    lacking: Mapping[str, Sequence[str]],
    trials: Sequence[PlannedTrial],
    *,
    store: Store,
    run_id: int,
    options: RunOptions,
    work: StudyWork,
    listener: Listener,
    measure: MeasureKept | None = None,
) -> LaterSummary:
    """Take the measurements that `lacking` names by trial id; `trials` holds these trials, among others.

    `measure` must be importable in a worker; None is the real one. SIGINT, SIGTERM and a request to stop the study
    end it early: what was measured is kept. A trial that cannot be measured gets a cause, and the others go on. Raises
    UserError as `run_trials` does.
    """
    wanted = [trial for trial in trials if trial.trial_id in lacking]
    check_options(options)
    check_cluster(options.address)
    tasks = _Tasks(wanted, lacking, store, run_id, options, work, listener, measure)
    with Interrupt() as interrupt:
        try:
            with connected(options, listener.note), marked(options) as marker:
                checked = check_machines(
                    options,
                    marker,
                    configs_of(wanted),
                    lambda: interrupt.requested,
                    corpus=work.corpus,
                    measurements=work.measurements,
                )
                tasks.run(checked.slots, interrupt)
        finally:
            tasks.leave()
    return LaterSummary(interrupted=interrupt.requested, causes=tasks.causes)


class _Tasks:
    """The trials still to be measured, and those that are being measured."""

    def __init__(
        self,
        trials: Sequence[PlannedTrial],
        lacking: Mapping[str, Sequence[str]],
        store: Store,
        run_id: int,
        options: RunOptions,
        work: StudyWork,
        listener: Listener,
        measure: MeasureKept | None,
    ) -> None:
        self._queue = deque(trials)
        self._flights: dict[Any, PlannedTrial] = {}
        self._attempts: Counter[str] = Counter()
        self._lacking, self._store, self._run_id = lacking, store, run_id
        self._options, self._study, self._listener, self._measure = options, work.study, listener, measure
        need = per_pack(options)
        # Another attempt is the driver's to make: it counts them.
        self._placement = Placement(options, work.corpus, {})
        self._task = ray.remote(num_cpus=need["cpu"], num_gpus=need.get("gpu", 0), max_retries=0)(_measure_one)
        self._asks_again_s = 0.0
        self.causes: dict[str, str] = {}

    def run(self, slots: int, interrupt: Interrupt) -> None:
        """Measure until nothing is left or the user interrupts. Raises UserError where the disk takes nothing more.

        `slots` measurements fit on the machines at first; these may come and go.
        """
        while (self._queue or self._flights) and not interrupt.requested:
            self._obey(interrupt)
            self._placement.update(resources(nodes()))
            slots = self._placement.slots or slots
            at_once = min(slots, self._options.max_concurrent or slots)
            while self._queue and len(self._flights) < at_once:
                self._submit(self._queue.popleft())
            ended, _ = ray.wait(list(self._flights), timeout=LOOK_S)
            for reference in ended:
                if not interrupt.requested:
                    self._take_in(reference, self._flights.pop(reference))

    def _obey(self, interrupt: Interrupt) -> None:
        """Stop where that was asked; the store is not asked at every look."""
        study = self._study
        if study is not None and time.monotonic() >= self._asks_again_s:
            self._asks_again_s = time.monotonic() + POLL_S
            obey(self._store, study, self._run_id, interrupt, self._listener)

    def leave(self) -> None:
        """Record what those that still ran have left.

        They are not cancelled: where an answer is on its way at that moment, Ray 2.60 aborts the driver ("Tried to
        complete task that was not pending"). They end with the connection to Ray, which `all` keeps for its other
        studies; what a worker writes after this is for the next run to record.
        """
        # Where an object store is away, the next run finds these measurements.
        with contextlib.suppress(BucketError):
            for trial in self._flights.values():
                self._record(trial)
        self._flights.clear()

    def _submit(self, trial: PlannedTrial) -> None:
        names = tuple(self._lacking[trial.trial_id])
        config = read_config(trial.config)
        job = Job(
            title=trial.name,
            options=self._options.for_workers(),
            measurements=names,
            run_trial=None,
        )
        memory = self._placement.anywhere([config])
        how = {"name": trial.name, **({"memory": memory} if memory else {})}
        reference = self._task.options(**how).remote(config.canonical_json(), job, self._measure)
        self._flights[reference] = trial
        self._attempts[trial.trial_id] += 1
        self._listener.started(trial.trial_id, trial.name)

    def _take_in(self, reference: Any, trial: PlannedTrial) -> None:
        try:
            answer: _Answer = ray.get(reference)
        except RayError as error:
            if self._attempts[trial.trial_id] < self._options.max_attempts:
                self._listener.note(f"{trial.name}: {_why(error)}; it is measured again.")
                self._queue.append(trial)
                return
            answer = _Answer(cause=_why(error))
        problem = patiently(lambda: self._record(trial))
        if answer.disk is not None:
            raise UserError(
                f"The disk of {self._options.storage.work_folder} {answer.disk} and type the same command again; what "
                "was measured is kept."
            )
        if answer.bucket is not None:
            raise UserError(f"{answer.bucket}; what was measured is kept.")
        cause = answer.cause or problem
        if cause is not None:
            self.causes[trial.trial_id] = cause
        outcome = TrialOutcome(trial_id=trial.trial_id, state="failed" if cause else "done", cause=cause)
        self._listener.finished(trial.trial_id, outcome)

    def _record(self, trial: PlannedTrial) -> str | None:
        """Record the files there are; why that cannot be, where it cannot."""
        names = self._lacking[trial.trial_id]
        try:
            self._options.storage.bring_measurements([trial.trial_id], names)
            record_later(self._store, self._options.storage, trial.trial_id, names, run_id=self._run_id)
        except ValueError as error:
            return f"what was measured cannot be recorded: {error}"
        return None


def _measure_one(config_json: str, job: Job, measure: MeasureKept | None) -> _Answer:
    """What runs in a worker process. Whatever is raised is this trial's alone; it is answered, not swallowed."""
    os.environ["OMP_NUM_THREADS"] = str(job.options.runtime.threads)
    config = read_config(json.loads(config_json))
    try:
        runtime = on_this_machine(job.options.runtime, job.options.data)
        with job.options.storage.working(config.trial_id) as folder:
            return _attempt(config, folder, runtime, job, measure)
    except UserError as error:
        return _Answer(bucket=str(error))


def _attempt(
    config: AnyConfig, folder: TrialFolder, runtime: Runtime, job: Job, measure: MeasureKept | None
) -> _Answer:
    try:
        (measure or _default_measure())(config, directory=folder.path, runtime=runtime, names=job.measurements)
    except UserError as error:
        return _Answer(cause=job.options.storage.in_words_of_user(str(error), folder))
    except OSError as error:
        if error.errno in DISK_TROUBLES:
            return _Answer(disk=DISK_TROUBLES[error.errno])
        return _Answer(cause=folder.failure_cause(error, runtime.layer_files))
    except (Exception, SystemExit) as error:
        return _Answer(cause=folder.failure_cause(error, runtime.layer_files))
    return _Answer()


def _default_measure() -> MeasureKept:
    from trainables.trial.measure_kept import measure_kept

    return measure_kept


def _why(error: RayError) -> str:
    """Why a task ended without an answer, in one clause."""
    if isinstance(error, OutOfMemoryError):
        return LOW_MEMORY
    if isinstance(error, WorkerCrashedError):
        return PROCESS_DIED
    return last_line(error)
