"""The Ray cluster under a sweep: started or joined."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray

from orchestrator.cluster import ray_patches
from orchestrator.cluster.address import check_address, make_token_private, token_path
from orchestrator.cluster.ray_watch import RayWatch
from orchestrator.cluster.run_options import RunOptions
from orchestrator.cluster.scratch import scratch_folder
from orchestrator.cluster.shared_connection import entered
from orchestrator.guard import SIGNALS, beat, unwatched
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
    "RAY_ROTATION_MAX_BYTES": "10000000",
    "RAY_ROTATION_BACKUP_COUNT": "1",
    "MALLOC_ARENA_MAX": "1",
}
"""What Ray and Tune are told by environment: no telemetry, no logs, handlers and snapshots of
Tune's own, no change of the working directory, and a trial that asks for no GPU sees none. Tune
runs every trial in a new thread; with one arena for all of them, the memory that a trial gave back
is there for the next."""
OBJECT_STORE_BYTES = 2**27
"""Packs and reports are small; Ray's own default is a third of the machine's memory."""
START_S = 300.0
"""So long Ray may take to start: where its files come over a network for the first time,
minutes."""
END = "end of Ray"
END_S = 6.0
"""So long Ray may take to end."""
PRELOADED = "preloaded_by_workers"
PRELOADS = """import gc

gc.disable()
try:
    import torch, ray.tune, scipy.linalg, pydantic
finally:
    gc.freeze()
    gc.enable()
"""
"""The text of a module that a worker imports while it waits for its first trial. To look among all
that for garbage, which there is none of, takes long. A file of its own, as no worker may know yet
from where it will have to import this program."""


@contextmanager
def connected(options: RunOptions, note: Callable[[str], None]) -> Iterator[None]:
    """Connect to the cluster at `options.address`, or start one on this machine, for as long as the
    context lasts.

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
    watch = RayWatch()
    with scratch_folder() as folder:
        try:
            if options.address is None:
                # Of a Ray whose processes have died some calls return only after a minute, and
                # others never.
                watch.begin(local=True)
            with _patient():
                context = _start(folder) if options.address is None else _connect(options.address)
            _take_signals_again()
            if options.address is not None:
                watch.begin(local=False)
            if context.dashboard_url:
                note(
                    f"Ray dashboard: http://{context.dashboard_url} (some seconds from now; log in "
                    f"with the token that "
                    f"`ray get-auth-token` prints; it is kept in {token_path()})."
                )
            yield
        finally:
            watch.end()
            _end_ray()


@contextmanager
def _patient() -> Iterator[None]:
    """Meanwhile the sweep may stand still, but not for longer than Ray can need to start."""
    with unwatched():
        late = threading.Timer(START_S, beat)
        late.daemon = True
        late.start()
        try:
            yield
        finally:
            late.cancel()


def _end_ray() -> None:
    """Have Ray end; where a part of it has died that takes for ever, and what is left then ends
    with this process."""
    asked, answered = threading.Event(), threading.Event()

    def ask() -> None:
        asked.set()
        answered.wait(END_S)

    ray_patches.before_ray_ends_its_processes(ask)
    ending = threading.Thread(target=ray.shutdown, name=END, daemon=True)
    ending.start()
    deadline_s = time.monotonic() + END_S
    while ending.is_alive() and time.monotonic() < deadline_s:
        ending.join(0.02)
        if asked.is_set() and not answered.is_set():
            _take_signals_again()
            answered.set()


def _tell_ray() -> None:
    """Give Ray its settings, and let it log nothing here: what is amiss is said in a sentence."""
    os.environ.update(SETTINGS)
    for name in ("ray", "ray.tune"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def check_cluster(address: str | None) -> None:
    """Raise UserError where `connected` would find no cluster at the address; a signal ends this as
    it ends anything.

    Within a process that is connected already nothing is asked.
    """
    if address is None or ray.is_initialized():
        return
    _tell_ray()
    ray_patches.show_token()
    check_address(address)


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
    # Of its own, so that no worker imports what another one leaves in the folder of temporary
    # files.
    preloads = folder / "preload"
    paths = [str(preloads), *filter(None, [os.environ.get("PYTHONPATH")])]
    # Ray's dashboard opens sockets in TMPDIR too, and would not come up with a longer path, or
    # leaves them.
    variables = {
        "TMPDIR": str(folder),
        "PYTHONPATH": os.pathsep.join(paths),
        "RAY_preload_python_modules": PRELOADED,
    }
    ray_patches.use_ready_workers()
    try:
        preloads.mkdir()
        (preloads / f"{PRELOADED}.py").write_text(PRELOADS)
        with _environment(variables), ray_patches.on_loopback(), ray_patches.helpers_later():
            return ray.init(
                address="local",
                include_dashboard=True,
                dashboard_host="127.0.0.1",
                object_store_memory=OBJECT_STORE_BYTES,
                log_to_driver=False,
                logging_level=logging.CRITICAL,
                # Not the folder itself: Ray lets every user of the machine write here.
                _temp_dir=str(folder / "ray"),
            )
    except Exception as error:  # Ray raises bare ones too
        raise UserError(
            f"Ray cannot be started on this machine ({first_line(error)}): see that "
            f"{folder.parent} and this machine's "
            "memory have room, then type the same command again, or name a running cluster with "
            "--address."
        ) from error


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Have these variables for as long as the context lasts."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _connect(address: str) -> Any:
    environment = {
        name: value for name, value in SETTINGS.items() if name.startswith(("RAY_", "MALLOC_"))
    }
    try:
        return ray.init(
            address=address,
            runtime_env={"env_vars": environment},
            log_to_driver=False,
            logging_level=logging.CRITICAL,
        )
    except (OSError, RuntimeError, ValueError) as error:
        raise UserError(
            f"The Ray cluster at --address {address} cannot be joined from here "
            f"({first_line(error)}): run the command "
            "on a machine of the cluster with --address auto."
        ) from error
