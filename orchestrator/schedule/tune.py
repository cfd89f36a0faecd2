"""A sweep's packs as trials of Ray Tune: a searcher that hands them out, a callback that takes in what they report.

The decisions are the dispatcher's; here is only what has to speak to Tune. Nothing of Tune's own state is read
back: what is done is known from the store.
"""

from __future__ import annotations

import os
import pickle
import re
from pathlib import Path
from typing import Any, Self

import ray
from ray import tune
from ray.air._internal import usage
from ray.exceptions import RayActorError
from ray.tune.experiment import Trial
from ray.tune.progress_reporter import TrialProgressCallback
from ray.tune.schedulers import FIFOScheduler
from ray.tune.search import Searcher
from typing_extensions import override

from orchestrator.cluster.connection import scratch_folder
from orchestrator.cluster.resources import per_pack
from orchestrator.cluster.run_options import RunOptions
from orchestrator.schedule.study_work import LOW_MEMORY, MACHINE_LEFT, PROCESS_DIED
from orchestrator.schedule.tune_link import Bridge, Parcel
from orchestrator.worker.messages import EVENTS
from orchestrator.worker.pack_run import Job, UnfitMachineError, make_trainable
from trainables.errors import last_line

FINISHED: Any = Searcher.FINISHED
"""A string, though `Searcher.suggest` is declared to return a dictionary."""
MOST_PENDING = "1000"
"""Of Tune's trials that wait for a machine. The dispatcher hands out one more pack than fits, so there are never as
many, whatever machines join; with one, Tune would start one at a time."""
KEPT_OF_RESULTS = {"training_iteration", "done", "trial_id", "node_ip", "pid"}
"""What Tune needs of a report. It keeps the last one of every pack for ever, and statistics of every number in it."""


def fit(bridge: Bridge, options: RunOptions, job: Job) -> None:
    """Let Tune run until the bridge has nothing more; raises what the bridge met."""
    bundle = {name.upper(): amount for name, amount in per_pack(options).items()}

    def resources(config: dict[str, Any]) -> tune.PlacementGroupFactory:
        pack: Parcel = config["pack"]
        place = pack.place
        asked = {**bundle, "memory": place.memory_bytes} if place.memory_bytes else bundle
        where: dict[str, Any] = {"bundle_label_selector": [{"ray.io/node-id": f"!in({','.join(place.not_on)})"}]}
        return tune.PlacementGroupFactory([asked], **(where if place.not_on else {}))

    os.environ["TUNE_MAX_PENDING_TRIALS_PG"] = MOST_PENDING
    # For its usage statistics, which are off, Tune would import MLflow and others wherever they are installed.
    usage.tag_callbacks = _count_nothing
    controls = _Controls()
    with scratch_folder("sweep-tune-") as folder:
        tuner = tune.Tuner(
            tune.with_resources(make_trainable(job), resources),
            tune_config=tune.TuneConfig(
                search_alg=_Packs(bridge),
                scheduler=controls,
                num_samples=-1,
                reuse_actors=True,
                trial_name_creator=_name,
                trial_dirname_creator=_name,
            ),
            run_config=tune.RunConfig(
                name="packs",
                storage_path=str(folder),
                callbacks=[_Reports(bridge, controls)],
                stop=_StopAll(bridge),
                verbose=0,
            ),
        )
        try:
            tuner.fit()
        finally:
            bridge.raise_error()


def _count_nothing(callbacks: object) -> bool:  # noqa: ARG001  (the signature of what it replaces)
    """In place of Tune's counting of callbacks."""
    return False


def _name(trial: Trial) -> str:
    return str(trial.trial_id)


class _Packs(Searcher):
    """Suggests packs instead of hyper-parameters."""

    def __init__(self, bridge: Bridge) -> None:
        super().__init__()
        self._bridge = bridge

    @override
    def suggest(self, trial_id: str) -> dict[str, Any] | None:
        """The next pack, None while there may be more later, FINISHED at the end."""
        parcels: list[Parcel | None] = []
        self._bridge.guard(lambda: parcels.append(self._bridge.send(trial_id)))
        if parcels and parcels[0] is not None:
            return {"pack": parcels[0]}
        over = self._bridge.stopping or self._bridge.dispatcher.finished
        return FINISHED if over else None

    @override
    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Nothing: the callback hears of it too, and knows the error."""

    @override
    def save(self, checkpoint_path: str) -> None:
        """Nothing: the store is the truth."""

    @override
    def restore(self, checkpoint_path: str) -> None:
        """Nothing: the store is the truth."""


class _Controls(FIFOScheduler):
    """Tune's own order of packs, and a hold on Tune itself for ending one that no machine has taken up."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Ray has no type for it
        self._tune: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {}  # Tune pickles all it is given, for a restore that never happens

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    @override
    def on_trial_add(self, tune_controller: Any, trial: Trial) -> None:
        """Keep hold of Tune."""
        self._tune = tune_controller

    def end(self, trial: Trial) -> None:
        """End a pack that has no worker yet."""
        self._tune.stop_trial(trial)


class _StopAll(tune.Stopper):
    """Ends the experiment once the bridge is stopping."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    @override
    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """No single pack is ever stopped."""
        return False

    @override
    def stop_all(self) -> bool:
        """True once the bridge is stopping."""
        return self._bridge.stopping


class _Reports(TrialProgressCallback):
    """Takes what workers report to the dispatcher, and kills them where the sweep has to stop.

    Stands where Tune would put a printer of its own, whatever its verbosity.
    """

    def __init__(self, bridge: Bridge, controls: _Controls) -> None:
        self._bridge, self._controls = bridge, controls

    @override
    def on_step_begin(self, iteration: int, trials: list[Trial], **info: Any) -> None:
        """Kill running workers when stopping, or whose trial was asked to stop: Tune would wait for an epoch's end.

        Packs that wait for a machine that is gone end, too.
        """
        given_up = self._bridge.look()
        if not (given_up or self._bridge.stopping):
            return
        for trial in trials:
            actor = trial.temporary_state.ray_actor
            wanted = self._bridge.stopping or trial.trial_id in given_up
            if wanted and trial.status == Trial.RUNNING and actor is not None:
                ray.kill(actor)
            elif trial.trial_id in given_up and trial.status == Trial.PENDING:
                self._controls.end(trial)

    @override
    def on_trial_result(
        self, iteration: int, trials: list[Trial], trial: Trial, result: dict[str, Any], **info: Any
    ) -> None:
        """Take events in."""
        text = result["events"]
        for key in set(result) - KEPT_OF_RESULTS:
            del result[key]
        self._bridge.guard(lambda: self._bridge.dispatcher.events(trial.trial_id, EVENTS.validate_json(text)))

    @override
    def on_trial_complete(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        """A pack came to its end."""
        self._bridge.guard(lambda: self._bridge.ended(trial.trial_id))

    @override
    def on_trial_error(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        """A pack's worker died or raised."""
        error = _error_of(trial)
        if isinstance(error, UnfitMachineError):
            self._bridge.guard(lambda: self._bridge.refused(trial.trial_id, error.why, error.machine))
            return
        self._bridge.guard(lambda: self._bridge.ended(trial.trial_id, **_cause(error)))


def _error_of(trial: Trial) -> Exception | None:
    """What Tune's trial ended with; from a file that Tune has just written in this run's own folder."""
    if trial.pickled_error_file is None:
        return None
    error: Exception = pickle.loads(Path(trial.pickled_error_file).read_bytes())
    return error


def _cause(error: Exception | None) -> dict[str, Any]:
    """Why a pack ended: in one clause, whether its process died, and on which machine."""
    if error is None:
        return {"cause": "its worker could not start", "process_died": False}
    text = str(error)
    if not isinstance(error, RayActorError):
        return {"cause": last_line(error), "process_died": False}
    if "low on memory" in text:
        cause = LOW_MEMORY
    elif "node" in text and "has died" in text and "worker process has died" not in text:
        cause = MACHINE_LEFT
    else:
        cause = PROCESS_DIED
    place = re.search(r"^\s*ip: (\S+)$", text, re.MULTILINE)
    return {"cause": cause, "process_died": True, "machine": place and place[1]}
