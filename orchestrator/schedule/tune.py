"""Run packs as trials of Ray Tune.

Tune gets packs from a searcher, runs each in a function, and passes reports to a callback. The
driver decides what runs. Tune's own state is never read.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import ray
from ray import tune
from ray.exceptions import OutOfMemoryError, RayActorError, RayError
from ray.tune.experiment import Trial
from ray.tune.progress_reporter import TrialProgressCallback
from ray.tune.schedulers import FIFOScheduler
from ray.tune.search import Searcher
from typing_extensions import override

from orchestrator.cluster import (
    LateMachines,
    UnfitMachineError,
    leave_sign,
    machine_here,
    per_pack,
    ray_private,
    scratch_folder,
)
from orchestrator.schedule.driver import Driver, start_again_or_raise
from orchestrator.worker import (
    Ending,
    EndingKind,
    Job,
    MachineRequest,
    MemoryShortageError,
    Parcel,
    beating,
    run_pack,
)
from trainables.errors import last_line

FINISHED: Any = Searcher.FINISHED  # a string, which `Searcher.suggest` does not declare
# Part of Ray's message after its memory monitor killed a process.
LOW_ON_MEMORY = "low on memory"
# Tune needs these keys of a report. All others are removed, because Tune keeps each pack's last
# report and statistics.
TUNE_KEYS = {"training_iteration", "done", "trial_id", "node_ip", "pid"}


class _Unpickled:
    # Tune would pickle and copy such objects to restore a run, but it restores nothing here.

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def _trainable(
    job: Job, title: str, late_machines: LateMachines | None
) -> Callable[[dict[str, Any]], None]:
    def send(text: str, trial_name: str) -> None:
        tune.report({"events": text, "machine": machine_here()})
        ray_private.name_process(trial_name)  # Ray has renamed it

    def run(config: dict[str, Any]) -> None:
        if late_machines is not None:
            late_machines.refuse_unfit()
        parcel: Parcel = config["pack"]
        code_files = [file.name for file in job.options.runtime.code]
        with beating(lambda beat: leave_sign(parcel.key, beat), machine_here(), code_files):
            run_pack(parcel.open(), job, send)

    run.__name__ = title
    return run


def fit(driver: Driver, job: Job, *, title: str, late_machines: LateMachines | None) -> None:
    """Run Ray Tune until no pack is left.

    `title` is the name of the workers in Ray's dashboard. Raises the driver's error, if any. Raises
    UserError if Ray or Tune fails and no guard process can restart the command.
    """

    def resources(config: dict[str, Any]) -> tune.PlacementGroupFactory:
        request: MachineRequest = config["pack"].request
        need = per_pack(job.options)
        if request.memory_bytes:
            need["memory"] = request.memory_bytes
        selector: dict[str, Any] = {
            "bundle_label_selector": [
                {"ray.io/node-id": f"!in({','.join(request.excluded_machines)})"}
            ]
        }
        return tune.PlacementGroupFactory([need], **(selector if request.excluded_machines else {}))

    controller = _PackScheduler()
    with scratch_folder() as folder:
        tuner = tune.Tuner(
            tune.with_resources(_trainable(job, title, late_machines), resources),
            tune_config=tune.TuneConfig(
                search_alg=_PackSearcher(driver, controller),
                scheduler=controller,
                num_samples=-1,
                reuse_actors=True,
                trial_name_creator=_trial_name,
                trial_dirname_creator=_trial_name,
            ),
            run_config=tune.RunConfig(
                name="packs",
                storage_path=str(folder),
                callbacks=[_DriverCallback(driver, controller)],
                stop=_DriverStopper(driver),
                verbose=0,
            ),
        )
        try:
            tuner.fit()
        except (RayError, OSError, RuntimeError) as error:
            driver.raise_error()
            cause = error.__cause__ if isinstance(error.__cause__, RayError) else error
            if not isinstance(cause, RayError | OSError):
                raise
            reason = f"Ray Tune failed ({last_line(cause)})"
            if isinstance(cause, OutOfMemoryError):
                reason = "Memory ran out, and Ray ended one of its processes"
            start_again_or_raise(reason)
        finally:
            driver.raise_error()


def _trial_name(trial: Trial) -> str:
    return str(trial.trial_id)


class _PackSearcher(_Unpickled, Searcher):
    def __init__(self, driver: Driver, controller: _PackScheduler) -> None:
        super().__init__()
        self._driver, self._controller = driver, controller

    @override
    def suggest(self, trial_id: str) -> dict[str, Any] | None:
        pack = self._driver.next_pack(trial_id)
        if pack is None:
            if self._driver.has_idle_workers:
                self._controller.release_idle_workers()
            return FINISHED if self._driver.finished else None
        return {"pack": pack}

    @override
    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """Do nothing: `_DriverCallback` handles ended packs."""

    @override
    def save(self, checkpoint_path: str) -> None:
        """Do nothing: the store holds the state."""

    @override
    def restore(self, checkpoint_path: str) -> None:
        """Do nothing: the store holds the state."""


class _PackScheduler(_Unpickled, FIFOScheduler):
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Ray has no type for it
        self._controller: Any = None

    @override
    def on_trial_add(self, tune_controller: Any, trial: Trial) -> None:
        self._controller = tune_controller

    def end_waiting(self, trial: Trial) -> None:
        """End a pack that has no worker."""
        if ray_private.find(ray_private.STOP) is not None:
            self._controller.stop_trial(trial)

    def release_idle_workers(self) -> None:
        """End the workers that Tune keeps for further packs."""
        if self._controller is not None and ray_private.find(ray_private.RELEASE) is not None:
            self._controller._cleanup_cached_actors(force_all=True)
            # While no pack runs, Tune would not process the ends of these workers.
            self._controller._cleanup_stopping_actors(force_all=True)


class _DriverStopper(_Unpickled, tune.Stopper):
    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    @override
    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        return False

    @override
    def stop_all(self) -> bool:
        return self._driver.stopping


class _DriverCallback(_Unpickled, TrialProgressCallback):
    # A subclass of `TrialProgressCallback`, so that Tune prints no progress itself.

    def __init__(self, driver: Driver, controller: _PackScheduler) -> None:
        self._driver, self._controller = driver, controller

    @override
    def on_step_begin(self, iteration: int, trials: list[Trial], **info: Any) -> None:
        ending_keys, stopping = self._driver.poll(), self._driver.stopping
        for trial in trials if ending_keys or stopping else ():
            actor = trial.temporary_state.ray_actor
            must_end = stopping or trial.trial_id in ending_keys
            if must_end and trial.status == Trial.RUNNING and actor is not None:
                ray.kill(actor)  # Tune would let an epoch end first
            elif trial.trial_id in ending_keys and trial.status == Trial.PENDING:
                self._controller.end_waiting(trial)

    @override
    def on_trial_start(
        self, iteration: int, trials: list[Trial], trial: Trial, **info: Any
    ) -> None:
        self._driver.start_pack(trial.trial_id)

    @override
    def on_trial_result(
        self, iteration: int, trials: list[Trial], trial: Trial, result: dict[str, Any], **info: Any
    ) -> None:
        text, machine = result["events"], result["machine"]
        for key in set(result) - TUNE_KEYS:
            del result[key]
        self._driver.process_events(trial.trial_id, text, machine)

    @override
    def on_trial_complete(
        self, iteration: int, trials: list[Trial], trial: Trial, **info: Any
    ) -> None:
        self._driver.end_pack(trial.trial_id)

    @override
    def on_trial_error(
        self, iteration: int, trials: list[Trial], trial: Trial, **info: Any
    ) -> None:
        self._driver.end_pack(trial.trial_id, _ending(trial))


def _ending(trial: Trial) -> Ending:
    if trial.pickled_error_file is None:
        if trial.error_file is not None and LOW_ON_MEMORY in Path(trial.error_file).read_text(
            encoding="utf-8"
        ):
            return Ending(EndingKind.LOW_MEMORY)
        return Ending(EndingKind.ERROR, "its worker could not start")
    # Safe, because Tune pickled the error in this run's own folder.
    error: Exception = pickle.loads(Path(trial.pickled_error_file).read_bytes())
    text = str(error)
    if isinstance(error, UnfitMachineError):
        return Ending(EndingKind.MACHINE_UNFIT, error.reason, error.machine)
    if isinstance(error, MemoryShortageError):
        return error.ending
    if not isinstance(error, RayActorError | OutOfMemoryError):
        return Ending(EndingKind.ERROR, last_line(error))
    # Only Ray's message distinguishes these kinds.
    if LOW_ON_MEMORY in text:
        kind = EndingKind.LOW_MEMORY
    elif "node" in text and "has died" in text and "worker process has died" not in text:
        kind = EndingKind.MACHINE_LEFT
    else:
        kind = EndingKind.PROCESS_DIED
    address = re.search(r"^\s*ip: (\S+)$", text, re.MULTILINE)
    return Ending(kind, machine=address and address[1])
