"""The Ray cluster under a sweep: started or joined."""

from __future__ import annotations

import logging
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray

from orchestrator.cluster import ray_patches
from orchestrator.cluster.address import check_address, make_token_private, token_path
from orchestrator.cluster.interrupt import SIGNALS
from orchestrator.cluster.run_options import RunOptions
from orchestrator.cluster.shared_connection import entered
from trainables.errors import UserError, first_line

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
PRELOADED = {"RAY_preload_python_modules": "torch,ray.tune,scipy.linalg,pydantic"}
"""What a worker imports while it waits for its first trial."""
LONGEST_BASE = 22
"""Bytes of a folder in which Ray can start: it puts sockets 85 bytes further down, and a socket's path ends at 107."""


@contextmanager
def connected(options: RunOptions, note: Callable[[str], None]) -> Iterator[None]:
    """Connect to the cluster at `options.address`, or start one on this machine, for as long as the context lasts.

    Within a process that is connected already, that connection is used and left; so it is within
    `orchestrator.cluster.shared_connection.shared`, which ends it.
    """
    _tell_ray()
    if ray.is_initialized():
        yield
        return
    with entered(_connected(options, note)):
        yield


@contextmanager
def _connected(options: RunOptions, note: Callable[[str], None]) -> Iterator[None]:
    ray_patches.leave_sigterm_alone()
    ray_patches.print_no_deaths()
    ray_patches.show_typed_command()
    with scratch_folder("sweep-ray-") as folder:
        try:
            context = _start(folder) if options.address is None else _connect(options.address)
            _take_signals_again()
            if context.dashboard_url:
                note(
                    f"Ray dashboard: http://{context.dashboard_url} (some seconds from now; log in with the token that "
                    f"`ray get-auth-token` prints; it is kept in {token_path()})."
                )
            yield
        finally:
            ray_patches.before_ray_ends_its_processes(_take_signals_again)
            ray.shutdown()


def _tell_ray() -> None:
    """Give Ray its settings, and let it log nothing here: what is amiss is said in a sentence."""
    os.environ.update(SETTINGS)
    for name in ("ray", "ray.tune"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def check_cluster(address: str | None) -> None:
    """Raise UserError where `connected` would find no cluster at the address; a signal ends this as it ends anything.

    Within a process that is connected already nothing is asked.
    """
    if address is None or ray.is_initialized():
        return
    _tell_ray()
    ray_patches.show_token()
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


def _take_signals_again() -> None:
    """Install Python's handlers of signals once more: Ray's own code has put others below them."""
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            handler = signal.getsignal(number)
            if handler is not None:
                signal.signal(number, handler)


def _start(folder: Path) -> Any:
    """Start Ray on this machine, every port of it on loopback."""
    make_token_private()
    before = os.environ.get("TMPDIR")
    if before is not None and len(os.fsencode(before)) > LONGEST_BASE:
        # Ray's dashboard opens sockets there too, and would never come up.
        os.environ["TMPDIR"] = str(folder)
    os.environ.update(PRELOADED)
    ray_patches.use_ready_workers()
    try:
        with ray_patches.on_loopback(), ray_patches.helpers_later():
            return ray.init(
                address="local",
                include_dashboard=True,
                dashboard_host="127.0.0.1",
                object_store_memory=OBJECT_STORE_BYTES,
                log_to_driver=False,
                logging_level=logging.CRITICAL,
                _temp_dir=str(folder / "r"),  # Ray lets everybody write to this folder, and nobody else gets into ours
            )
    except Exception as error:  # Ray raises bare ones too
        raise UserError(
            f"Ray cannot be started on this machine ({first_line(error)}): see that {folder.parent} and this machine's "
            "memory have room, then type the same command again, or name a running cluster with --address."
        ) from error
    finally:
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
            f"The Ray cluster at --address {address} cannot be joined from here ({first_line(error)}): run the command "
            "on a machine of the cluster with --address auto."
        ) from error
