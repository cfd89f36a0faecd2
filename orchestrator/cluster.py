"""The Ray cluster under a sweep: started or joined, and asked whether the sweep's trials could run on it at all."""

from __future__ import annotations

import logging
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray
from pydantic import ValidationError
from ray._private import ray_constants
from ray._private import utils as ray_utils
from ray._private import worker as ray_worker
from ray._private.authentication.authentication_token_setup import maybe_enable_token_auth_if_token_available
from ray.exceptions import GetTimeoutError, RayError

from orchestrator.address import check_address, token_path
from orchestrator.execution import ScheduleOptions
from orchestrator.interrupt import SIGNALS
from orchestrator.preflight import Findings, check, faults, look, question
from orchestrator.resources import per_pack
from orchestrator.shared_cluster import entered
from orchestrator.worker import cuda_problem
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
    "MALLOC_ARENA_MAX": "1",
}
"""What Ray and Tune are told by environment: no telemetry, no logs, handlers and snapshots of Tune's own, no change of
the working directory, and a trial that asks for no GPU sees none. Tune runs every trial in a new thread; with one
arena for all of them, the memory that a trial gave back is there for the next."""
OBJECT_STORE_BYTES = 2**27
"""Packs and reports are small; Ray's own default is a third of the machine's memory."""
ANSWER_S = 300.0
"""A machine that has to fetch a corpus may take minutes to answer."""
LONGEST_BASE = 24
"""Bytes of a folder in which Ray can start: it puts sockets 83 bytes further down, and a socket's path ends at 107."""


@contextmanager
def connected(options: ScheduleOptions, note: Callable[[str], None]) -> Iterator[None]:
    """Connect to the cluster at `options.address`, or start one on this machine, for as long as the context lasts.

    Within a process that is connected already, that connection is used and left; so it is within
    `orchestrator.shared_cluster.shared`, which ends it.
    """
    os.environ.update(SETTINGS)
    if ray.is_initialized():
        yield
        return
    with entered(_connected(options, note)):
        yield


@contextmanager
def _connected(options: ScheduleOptions, note: Callable[[str], None]) -> Iterator[None]:
    # While it starts, Ray would end the process at SIGTERM.
    ray_utils.set_sigterm_handler = _leave_as_it_is
    # Ray prints a page for every process that dies; the dispatcher says it in a sentence.
    ray_worker.print_to_stdstream = _print_nothing
    for name in ("ray", "ray.tune"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with scratch_folder("sweep-ray-") as folder:
        try:
            context = _start(folder) if options.address is None else _connect(options.address)
            _take_signals_again()
            if context.dashboard_url:
                note(
                    f"Ray dashboard: http://{context.dashboard_url} (log in with the token that `ray get-auth-token` "
                    f"prints; it is kept in {token_path()})."
                )
            yield
        finally:
            _stop()


def check_cluster(address: str | None) -> None:
    """Raise UserError where `connected` would find no cluster at the address; a signal ends this as it ends anything.

    Within a process that is connected already nothing is asked.
    """
    if address is None or ray.is_initialized():
        return
    os.environ.update(SETTINGS)
    # Ray shows its token by itself only to a cluster it starts or finds with "auto".
    maybe_enable_token_auth_if_token_available(warn_if_disabled=False)
    check_address(address)


@contextmanager
def scratch_folder(prefix: str) -> Iterator[Path]:
    """A temporary folder with a path short enough for Ray's sockets. Raises UserError where none can be made."""
    base = tempfile.gettempdir()
    if len(os.fsencode(base)) > LONGEST_BASE:
        base = "/tmp"
    try:
        folder = tempfile.TemporaryDirectory(prefix=prefix, dir=base, ignore_cleanup_errors=True)
    except OSError as error:
        raise UserError(
            f"Ray needs a temporary folder, and in {base} none can be made ({error.strerror}): free space there, or "
            f"name another folder, of at most {LONGEST_BASE} characters, by the environment variable TMPDIR."
        ) from error
    with folder:
        yield Path(folder.name)


def _stop() -> None:
    """End or leave the cluster."""
    node = ray_worker._global_node
    if node is not None:
        # Ray first lets SIGTERM kill this process, for the 2 ms to here, then takes a second to end its own ones.
        end_processes = node.kill_all_processes

        def guarded(*arguments: Any, **options: Any) -> None:
            _take_signals_again()
            end_processes(*arguments, **options)

        node.kill_all_processes = guarded
    ray.shutdown()


def _take_signals_again() -> None:
    """Install Python's handlers of signals once more: Ray's own code has put others below them."""
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            handler = signal.getsignal(number)
            if handler is not None:
                signal.signal(number, handler)


def _leave_as_it_is(handler: object) -> None:
    """In place of Ray's taking of SIGTERM."""


def _print_nothing(data: dict[str, Any], ignore_prefix: bool) -> None:
    """In place of Ray's printing."""


def _start(folder: Path) -> Any:
    """Start Ray on this machine, every port of it on loopback."""
    # Without this Ray replaces 127.0.0.1 by the machine's outward address and listens on all of them.
    ray_constants.ENABLE_RAY_CLUSTER = False
    before = os.environ.get("TMPDIR")
    if before is not None and len(os.fsencode(before)) > LONGEST_BASE:
        # Ray's dashboard opens sockets there too, and would never come up.
        os.environ["TMPDIR"] = str(folder)
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
    except Exception as error:  # Ray raises bare ones too
        raise UserError(
            f"Ray cannot be started on this machine ({_reason(error)}): see that {folder.parent} and this machine's "
            "memory have room, then type the same command again, or name a running cluster with --address."
        ) from error
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = True
        if before is not None:
            os.environ["TMPDIR"] = before


def _connect(address: str) -> Any:
    environment = {name: value for name, value in SETTINGS.items() if name.startswith(("RAY_", "MALLOC_"))}
    try:
        return ray.init(
            address=address,
            runtime_env={"env_vars": environment},
            log_to_driver=False,
            logging_level=logging.CRITICAL,
        )
    except (OSError, RuntimeError, ValueError) as error:
        raise UserError(
            f"The Ray cluster at --address {address} cannot be joined from here ({_reason(error)}): run the command on "
            "a machine of the cluster with --address auto."
        ) from error


def _reason(error: Exception) -> str:
    """An error's first line; Ray's go on with advice about its own functions."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__).rstrip(".:")


def nodes() -> list[dict[str, Any]]:
    """Every live machine of the cluster, as Ray describes it."""
    known: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return [node for node in known if node["Alive"]]


def check_machines(
    options: ScheduleOptions, machines: Sequence[dict[str, Any]], given_up: Callable[[], bool], gpu_gb: float | None
) -> None:
    """Raise UserError, a sentence for each fault, where a machine of a cluster could not run the trials.

    `gpu_gb` is the memory that a trial needs of a whole GPU. Of a Ray that this program started on this machine,
    nothing is asked.
    """
    if options.address is None:
        return
    asked = question(options.storage, options.corpus, options.runtime.data_dir, gpus=gpu_gb is not None)
    task = ray.remote(num_cpus=0, max_retries=0)(look)
    sent = {
        _ip(node): task.options(resources={f"node:{_ip(node)}": 0.001}).remote(asked.model_dump_json())
        for node in machines
    }
    deadline_s = time.monotonic() + ANSWER_S
    while ray.wait(list(sent.values()), num_returns=len(sent), timeout=1.0)[1]:
        if given_up():
            return
        if time.monotonic() > deadline_s:
            break
    gpus = {_ip(node): float(node["Resources"].get("GPU", 0.0)) for node in machines}
    answers = {address: _answer(reference) for address, reference in sent.items()}
    check(faults(answers, gpus, options.storage, options.corpus, gpu_gb))


def _answer(reference: Any) -> Findings | str:
    try:
        return Findings.model_validate_json(ray.get(reference, timeout=0.1))
    except GetTimeoutError:
        return f"no answer within {ANSWER_S:g} s"
    except RayError as error:
        return next(iter(str(error).strip().splitlines()[-1:]), type(error).__name__)
    except ValidationError:
        return "another version of it answered"


def check_storage(storage: Path, machines: Sequence[dict[str, Any]]) -> None:
    """Raise UserError where a machine of the cluster does not see the storage folder of this one."""
    if len(machines) == 1:
        return
    marker = storage / f"seen-from-everywhere-{os.getpid()}"
    marker.touch()
    try:
        look = ray.remote(num_cpus=0)(_exists)
        seen = ray.get([look.options(resources={f"node:{_ip(node)}": 0.001}).remote(marker) for node in machines])
    finally:
        marker.unlink()
    blind = [_ip(node) for node, sees in zip(machines, seen, strict=True) if not sees]
    if blind:
        raise UserError(
            f"The storage folder {storage} is not the same one on {', '.join(blind)}: name a folder that all machines "
            "of the cluster share with --storage."
        )


def check_cuda(options: ScheduleOptions, given_up: Callable[[], bool]) -> None:
    """Raise UserError where a trial that asks for a GPU would find that torch cannot use it.

    A worker is asked, which may be on another machine; waiting for it ends early where `given_up` says so.
    """
    if not options.gpus_per_trial:
        return
    need = per_pack(options)
    answer = ray.remote(num_cpus=need["cpu"], num_gpus=need["gpu"])(cuda_problem).remote()
    while not ray.wait([answer], timeout=1.0)[0]:
        if given_up():
            return
    try:
        problem = ray.get(answer)
    except RayError as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        problem = f"its worker cannot use torch ({lines[-1]}): install torch on every machine of the cluster"
    if problem is not None:
        raise UserError(f"A trial asks for a GPU, and {problem}; or train on CPUs with --gpus-per-trial 0.")


def _exists(path: Path) -> bool:
    return path.exists()


def _ip(node: dict[str, Any]) -> str:
    return str(node["NodeManagerAddress"])
