"""Ray Tune as the executor of a sweep: a searcher that hands out packs, a callback that takes in what they report.

The decisions are `orchestrator.dispatch`'s; here is only what has to speak to Ray. Nothing of Tune's own state is read
back: what is done is known from the store.
"""

from __future__ import annotations

import logging
import os
import pickle
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray
from ray import tune
from ray._private import ray_constants
from ray._private import worker as ray_worker
from ray._private.authentication.authentication_token_setup import maybe_enable_token_auth_if_token_available
from ray.exceptions import RayActorError
from ray.tune.experiment import Trial
from ray.tune.progress_reporter import TrialProgressCallback
from ray.tune.search import Searcher
from typing_extensions import override

from orchestrator.address import check_address, token_path
from orchestrator.bridge import Bridge, Parcel
from orchestrator.dispatch import Dispatcher
from orchestrator.events import EVENTS
from orchestrator.execution import RunSummary, ScheduleOptions
from orchestrator.interrupt import Interrupt
from orchestrator.lease import LeaseKeeper, dead_owners
from orchestrator.progress import Listener
from orchestrator.resources import check_options, per_pack, slots_of
from orchestrator.store.interface import Store
from orchestrator.store.records import PlannedTrial
from orchestrator.worker import Job, RunTrial, make_trainable
from trainables.errors import UserError

SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "1",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    "TUNE_PRINT_ALL_TRIAL_ERRORS": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "TUNE_GLOBAL_CHECKPOINT_S": "1e9",
    "TUNE_FUNCTION_THREAD_TIMEOUT_S": "30",
}
"""What Ray and Tune are told by environment: no telemetry, no logs, handlers and snapshots of Tune's own, no change of
the working directory, and a trial that asks for no GPU sees none."""
FINISHED: Any = Searcher.FINISHED
"""A string, though `Searcher.suggest` is declared to return a dictionary."""
KEPT_OF_RESULTS = {"training_iteration", "done", "trial_id", "node_ip", "pid"}
"""What Tune needs of a report. It keeps the last one of every pack for ever, and statistics of every number in it."""
OBJECT_STORE_BYTES = 2**27
"""Packs and reports are small; Ray's own default is a third of the machine's memory."""


def run_trials(
    trials: Sequence[PlannedTrial],
    *,
    store: Store,
    run_id: int,
    owner: str,
    options: ScheduleOptions,
    listener: Listener,
    run_trial: RunTrial | None = None,
) -> RunSummary:
    """Run trials that are registered in `store` and not done, and return when every one of them has ended.

    `owner` is `orchestrator.lease.this_owner()`. `run_trial` must be importable in a worker; None is the real one.
    SIGINT and SIGTERM end the sweep early: what ran is planned again and goes on from its checkpoint next time.
    Trials that another driver runs are waited for. Raises UserError for resources that do not exist, an address where
    no cluster is, and a store that can no longer be written; no trial stays claimed then, where the store lets us.
    """
    start_s = time.monotonic()
    if not trials:
        return RunSummary()
    check_options(options)
    for dead in dead_owners(store.owners()):
        store.expire(dead)
    with Interrupt() as interrupt, connected(options, listener.note), LeaseKeeper(store, owner) as keeper:
        interrupt.install()
        nodes = _nodes()
        slots = slots_of([node["Resources"] for node in nodes], options)
        _check_storage(options.storage, nodes)
        dispatcher = Dispatcher(
            trials, store=store, run_id=run_id, owner=owner, options=options, listener=listener, slots=slots
        )
        bridge = Bridge(dispatcher, interrupt, keeper)
        try:
            _fit(bridge, options, run_trial, slots)
        finally:
            dispatcher.close()
        return dispatcher.summary(interrupted=interrupt.requested, seconds=time.monotonic() - start_s)


def _fit(bridge: Bridge, options: ScheduleOptions, run_trial: RunTrial | None, slots: int) -> None:
    """Let Tune run until the bridge has nothing more; raises what the bridge met."""
    job = Job(storage=options.storage, runtime=options.runtime, measurements=options.measurements, run_trial=run_trial)
    os.environ["TUNE_MAX_PENDING_TRIALS_PG"] = str(slots + 1)
    with tempfile.TemporaryDirectory(prefix="sweep-tune-") as folder:
        tuner = tune.Tuner(
            tune.with_resources(make_trainable(job), per_pack(options)),
            tune_config=tune.TuneConfig(
                search_alg=_Packs(bridge),
                num_samples=-1,
                reuse_actors=True,
                trial_name_creator=_name,
                trial_dirname_creator=_name,
            ),
            run_config=tune.RunConfig(
                name="packs", storage_path=folder, callbacks=[_Reports(bridge)], stop=_StopAll(bridge), verbose=0
            ),
        )
        try:
            tuner.fit()
        finally:
            bridge.raise_error()


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
        """Kill running workers when stopping: Tune would wait for the end of an epoch."""
        self._bridge.guard(self._bridge.check_lease)
        if self._bridge.stopping:
            for trial in trials:
                actor = trial.temporary_state.ray_actor
                if trial.status == Trial.RUNNING and actor is not None:
                    ray.kill(actor)

    @override
    def on_trial_result(
        self, iteration: int, trials: list[Trial], trial: Trial, result: dict[str, Any], **info: Any
    ) -> None:
        """Take events in."""
        events = EVENTS.validate_json(result["events"])
        for key in set(result) - KEPT_OF_RESULTS:
            del result[key]
        self._bridge.guard(lambda: self._bridge.dispatcher.events(trial.trial_id, events))

    @override
    def on_trial_complete(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        """A pack came to its end."""
        self._bridge.guard(lambda: self._bridge.ended(trial.trial_id))

    @override
    def on_trial_error(self, iteration: int, trials: list[Trial], trial: Trial, **info: Any) -> None:
        """A pack's worker died or raised."""
        self._bridge.guard(lambda: self._bridge.ended(trial.trial_id, **_cause(trial)))


def _cause(trial: Trial) -> dict[str, Any]:
    """Why Tune's trial ended: in one clause, and whether its process died."""
    if trial.pickled_error_file is None:
        return {"cause": "its worker could not start", "process_died": False}
    error = pickle.loads(Path(trial.pickled_error_file).read_bytes())
    text = str(error)
    if not isinstance(error, RayActorError):
        return {"cause": text.strip().splitlines()[-1], "process_died": False}
    if "low on memory" in text:
        cause = "its process was ended because the machine ran low on memory"
    elif "node" in text and "has died" in text and "worker process has died" not in text:
        cause = "its machine left the cluster"
    else:
        cause = "its process died (killed by a signal, out of memory, or left by an exit call)"
    return {"cause": cause, "process_died": True}


@contextmanager
def connected(options: ScheduleOptions, note: Callable[[str], None]) -> Iterator[None]:
    """Connect to the cluster at `options.address`, or start one on this machine, for as long as the context lasts.

    Within a process that is connected already, that connection is used and left.
    """
    os.environ.update(SETTINGS)
    if ray.is_initialized():
        yield
        return
    # Ray prints a page for every process that dies; the dispatcher says it in a sentence.
    ray_worker.print_to_stdstream = _print_nothing
    for name in ("ray", "ray.tune"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="sweep-ray-", ignore_cleanup_errors=True) as folder:
        context = _start(Path(folder)) if options.address is None else _connect(options.address)
        try:
            if context.dashboard_url:
                note(
                    f"Ray dashboard: http://{context.dashboard_url} (log in with the token that `ray get-auth-token` "
                    f"prints; it is kept in {token_path()})."
                )
            yield
        finally:
            ray.shutdown()


def _print_nothing(data: dict[str, Any], ignore_prefix: bool) -> None:
    """In place of Ray's printing."""


def _start(folder: Path) -> Any:
    """Start Ray on this machine, every port of it on loopback."""
    # Without this Ray replaces 127.0.0.1 by the machine's outward address and listens on all of them.
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        return ray.init(
            address="local",
            include_dashboard=True,
            dashboard_host="127.0.0.1",
            object_store_memory=OBJECT_STORE_BYTES,
            log_to_driver=False,
            logging_level=logging.CRITICAL,
            _temp_dir=str(folder),
        )
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = True


def _connect(address: str) -> Any:
    # Ray shows its token by itself only to a cluster it starts or finds with "auto".
    maybe_enable_token_auth_if_token_available(warn_if_disabled=False)
    check_address(address)
    environment = {name: value for name, value in SETTINGS.items() if name.startswith("RAY_")}
    try:
        return ray.init(
            address=address,
            runtime_env={"env_vars": environment},
            log_to_driver=False,
            logging_level=logging.CRITICAL,
        )
    except (ConnectionError, RuntimeError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UserError(
            f"The Ray cluster at --address {address} cannot be joined from here ({reason}): run the command on a "
            "machine of the cluster with --address auto."
        ) from error


def _nodes() -> list[dict[str, Any]]:
    """Every live machine of the cluster, as Ray describes it."""
    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return [node for node in nodes if node["Alive"]]


def _check_storage(storage: Path, nodes: Sequence[dict[str, Any]]) -> None:
    """Raise UserError where a machine of the cluster does not see the storage folder of this one."""
    if len(nodes) == 1:
        return
    marker = storage / f"seen-from-everywhere-{os.getpid()}"
    marker.touch()
    try:
        look = ray.remote(num_cpus=0)(_exists)
        seen = ray.get([look.options(resources={f"node:{_ip(node)}": 0.001}).remote(marker) for node in nodes])
    finally:
        marker.unlink()
    blind = [_ip(node) for node, sees in zip(nodes, seen, strict=True) if not sees]
    if blind:
        raise UserError(
            f"The storage folder {storage} is not the same one on {', '.join(blind)}: name a folder that all machines "
            "of the cluster share with --storage."
        )


def _exists(path: Path) -> bool:
    return path.exists()


def _ip(node: dict[str, Any]) -> str:
    return str(node["NodeManagerAddress"])
