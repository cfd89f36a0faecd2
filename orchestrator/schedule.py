"""Ray Tune as the executor of a sweep: a searcher that hands out packs, a callback that takes in what they report.

The decisions are `orchestrator.dispatch`'s; here is only what has to speak to Ray. Nothing of Tune's own state is read
back: what is done is known from the store.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import ray
from ray import tune
from ray.air._internal import usage
from ray.exceptions import RayActorError
from ray.tune.experiment import Trial
from ray.tune.progress_reporter import TrialProgressCallback
from ray.tune.search import Searcher
from typing_extensions import override

from orchestrator.bridge import Bridge, Parcel, Watch
from orchestrator.cluster import check_cluster, connected, scratch_folder
from orchestrator.dispatch import Dispatcher, Source
from orchestrator.events import EVENTS
from orchestrator.execution import LOW_MEMORY, MACHINE_LEFT, PROCESS_DIED, RunSummary, ScheduleOptions
from orchestrator.interrupt import Interrupt
from orchestrator.lease import LeaseKeeper, give_back_of_dead
from orchestrator.machines import address_of, amounts, check_machines, nodes
from orchestrator.metrics import SweepMetrics
from orchestrator.placement import MemoryNeeds, gpu_gb_of
from orchestrator.preflight import versions
from orchestrator.progress import Listener, Several
from orchestrator.resources import check_options, per_pack, slots_if_any, slots_of
from orchestrator.steering import Followed, Pool, Steering
from orchestrator.store.interface import Store
from orchestrator.store.records import PlannedTrial
from orchestrator.worker import Job, RunTrial, make_trainable

FINISHED: Any = Searcher.FINISHED
"""A string, though `Searcher.suggest` is declared to return a dictionary."""
MOST_PENDING = "1000"
"""Of Tune's trials that wait for a machine. The dispatcher hands out one more pack than fits, so there are never as
many, whatever machines join; with one, Tune would start one at a time."""
KEPT_OF_RESULTS = {"training_iteration", "done", "trial_id", "node_ip", "pid"}
"""What Tune needs of a report. It keeps the last one of every pack for ever, and statistics of every number in it."""


def run_trials(
    trials: Sequence[PlannedTrial],
    *,
    store: Store,
    run_id: int,
    owner: str,
    options: ScheduleOptions,
    listener: Listener,
    run_trial: RunTrial | None = None,
    source: Source | None = None,
    followed: Followed | None = None,
) -> RunSummary:
    """Run trials that are registered in `store` and not done, and return when every one of them has ended.

    With a `source`, trials follow that it gives as results come in, until it has no more. With `followed`, requests to
    stop its study or a trial reach this sweep, and trials that are added to it meanwhile run, too; machines may come
    and go. `owner` is `orchestrator.lease.this_owner()`. `run_trial` must be importable in a worker; None is the real
    one. SIGINT and SIGTERM end the sweep early: what ran is planned again and goes on from its checkpoint next time.
    Trials that another driver runs are waited for. Raises UserError for resources that do not exist, an address where
    no cluster is, a Ray that cannot start, a torch that cannot use the GPUs asked for, and a disk or store that can no
    longer be written; no trial stays claimed then, where the store lets us.
    """
    if not trials and source is None:
        return RunSummary()
    check_options(options)
    check_cluster(options.address)
    give_back_of_dead(store)
    with Interrupt() as interrupt, connected(options, listener.note), LeaseKeeper(store, owner) as keeper:
        machines = nodes()
        slots = slots_of(amounts(machines), options)
        gpu_gb = check_machines(options, machines, lambda: interrupt.requested, gpu_gb_of(trials, options))
        needs = MemoryNeeds(options, {node["NodeID"]: node["Resources"] for node in machines}, gpu_gb)
        told, watch = _with_metrics(listener, options, store)
        dispatcher = Dispatcher(
            trials,
            store=store,
            run_id=run_id,
            owner=owner,
            options=options,
            listener=told,
            slots=slots,
            source=source,
            barred=needs.barred,
        )
        steering = Steering(
            dispatcher,
            interrupt,
            listener,
            store=store,
            run_id=run_id,
            followed=followed,
            slots=slots,
            pool=lambda: _pool(options),
            layer_files=options.runtime.layer_files,
        )
        bridge = Bridge(dispatcher, interrupt, keeper, steering, needs, watch)
        with closing(dispatcher), _marked(options, owner) as marker:
            _fit(bridge, options, run_trial, marker)
    return RunSummary(interrupted=interrupt.requested)


def _with_metrics(listener: Listener, options: ScheduleOptions, store: Store) -> tuple[Listener, Watch | None]:
    """Who hears of the trials, and who is told at every step of the packs; Ray's metrics name the study."""
    if options.study is None:
        return listener, None
    metrics = SweepMetrics(options.study, store)
    return Several(listener, metrics), metrics.refresh


def _pool(options: ScheduleOptions) -> Pool:
    machines = nodes()
    return slots_if_any(amounts(machines), options), set(map(address_of, machines))


@contextmanager
def _marked(options: ScheduleOptions, owner: str) -> Iterator[Path | None]:
    """A file in the storage by which machines that join a cluster later know it; None where none can join, or an
    object store, which each trial asks for anyway, takes the place of the folder."""
    if options.address is None or options.mirror is not None:
        yield None
        return
    marker = options.storage / f".running-{hashlib.sha256(owner.encode()).hexdigest()[:12]}"
    marker.touch()
    try:
        yield marker
    finally:
        marker.unlink(missing_ok=True)


def _fit(bridge: Bridge, options: ScheduleOptions, run_trial: RunTrial | None, marker: Path | None) -> None:
    """Let Tune run until the bridge has nothing more; raises what the bridge met."""
    job = Job(
        title="trials" if options.study is None else options.study.variant,
        storage=options.storage,
        runtime=options.runtime,
        measurements=options.measurements,
        run_trial=run_trial,
        mirror=options.mirror,
        data=options.data,
        marker=marker,
        versions=versions() if options.address is not None else {},
    )
    bundle = {name.upper(): amount for name, amount in per_pack(options).items()}

    def resources(config: dict[str, Any]) -> tune.PlacementGroupFactory:
        pack: Parcel = config["pack"]
        asked = {**bundle, "memory": pack.memory_bytes} if pack.memory_bytes else bundle
        where: dict[str, Any] = {"bundle_label_selector": [{"ray.io/node-id": f"!in({','.join(pack.too_small)})"}]}
        return tune.PlacementGroupFactory([asked], **(where if pack.too_small else {}))

    os.environ["TUNE_MAX_PENDING_TRIALS_PG"] = MOST_PENDING
    # For its usage statistics, which are off, Tune would import MLflow and others wherever they are installed.
    usage.tag_callbacks = _count_nothing
    with scratch_folder("sweep-tune-") as folder:
        tuner = tune.Tuner(
            tune.with_resources(make_trainable(job), resources),
            tune_config=tune.TuneConfig(
                search_alg=_Packs(bridge),
                num_samples=-1,
                reuse_actors=True,
                trial_name_creator=_name,
                trial_dirname_creator=_name,
            ),
            run_config=tune.RunConfig(
                name="packs",
                storage_path=str(folder),
                callbacks=[_Reports(bridge)],
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

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    @override
    def on_step_begin(self, iteration: int, trials: list[Trial], **info: Any) -> None:
        """Kill running workers when stopping, or whose trial was asked to stop: Tune would wait for an epoch's end."""
        given_up = self._bridge.look()
        if not (given_up or self._bridge.stopping):
            return
        for trial in trials:
            actor = trial.temporary_state.ray_actor
            wanted = self._bridge.stopping or trial.trial_id in given_up
            if wanted and trial.status == Trial.RUNNING and actor is not None:
                ray.kill(actor)

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
        self._bridge.guard(lambda: self._bridge.ended(trial.trial_id, **_cause(trial)))


def _cause(trial: Trial) -> dict[str, Any]:
    """Why Tune's trial ended: in one clause, whether its process died, and on which machine."""
    if trial.pickled_error_file is None:
        return {"cause": "its worker could not start", "process_died": False}
    error = pickle.loads(Path(trial.pickled_error_file).read_bytes())
    text = str(error)
    if not isinstance(error, RayActorError):
        return {"cause": (text.strip().splitlines() or [type(error).__name__])[-1], "process_died": False}
    if "low on memory" in text:
        cause = LOW_MEMORY
    elif "node" in text and "has died" in text and "worker process has died" not in text:
        cause = MACHINE_LEFT
    else:
        cause = PROCESS_DIED
    place = re.search(r"^\s*ip: (\S+)$", text, re.MULTILINE)
    return {"cause": cause, "process_died": True, "machine": place and place[1]}
