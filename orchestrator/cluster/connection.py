"""The Ray cluster under a sweep: started or joined."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray

from orchestrator.cluster import ray_private
from orchestrator.cluster.address import check_address
from orchestrator.cluster.environment import FOR_WORKERS, make_token_private, token_path
from orchestrator.cluster.ray_watch import DIRECTORY, NODE, dead_process, silent_head, watching
from orchestrator.cluster.run_options import RunOptions
from orchestrator.cluster.scratch import scratch_folder
from orchestrator.cluster.shared_connection import entered
from orchestrator.guard import SIGNALS, patient
from trainables.errors import UserError, first_line

OBJECT_STORE_BYTES = 2**27
"""Packs and reports are small; Ray's own default is a third of the machine's memory."""
START_S = 300.0
"""Ray may take minutes to start if its files come over a network for the first time."""
END_S = 6.0
THREAD = "ray"
"""Name of the thread that starts and ends Ray."""
LOOPBACK = "127.0.0.1"
PRELOADED = "preloaded_by_workers"
PRELOADS = """import gc

gc.disable()
try:
    import torch, ray.tune, scipy.linalg, pydantic
finally:
    gc.freeze()
    gc.enable()
"""
"""Text of a module that a worker imports while it waits for its first trial. Looking for garbage in
all that takes long and finds none. It is a file of its own, as no worker may know yet from where it
will have to import this program."""


@contextmanager
def connected(options: RunOptions, note: Callable[[str], None]) -> Iterator[None]:
    """Connect to the cluster at `options.address`, or start one on this machine, for as long as the
    context lasts.

    A process that is connected already uses that connection and leaves it, as within
    `orchestrator.cluster.shared_connection.shared`, which ends it.
    """
    ray_private.adapt_ray(starts_here=options.address is None)
    if ray.is_initialized():
        yield
        return
    with entered(_connected(options, note)):
        yield


@contextmanager
def _connected(options: RunOptions, note: Callable[[str], None]) -> Iterator[None]:
    for name in ("ray", "ray.tune"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    for loss in ray_private.losses():
        note(loss)
    # Outside the main thread Ray leaves the handlers of signals alone. Its processes end with the
    # thread that started them, so one thread does both.
    thread = ThreadPoolExecutor(1, thread_name_prefix=THREAD)
    with scratch_folder() as folder:
        try:
            # Ray waits a minute for a dead directory, but reports why its raylet has ended.
            with watching(dead_process(DIRECTORY)), patient(START_S):
                context = thread.submit(_start_or_connect, options, folder).result()
            _take_signals_again()
            if context.dashboard_url:
                note(
                    f"Ray dashboard: http://{context.dashboard_url} (log in with the token that "
                    f"`ray get-auth-token` prints; it is kept in {token_path()})."
                )
            here = options.address is None
            with watching(dead_process(DIRECTORY, NODE) if here else silent_head()):
                yield
        finally:
            _end_ray(thread)


def _end_ray(thread: ThreadPoolExecutor) -> None:
    """Have Ray end. If a part of it has died that takes for ever, and what is left then ends with
    this process."""
    ending, deadline_s = thread.submit(ray.shutdown), time.monotonic() + END_S
    thread.shutdown(wait=False)
    while not ending.done() and time.monotonic() < deadline_s:
        time.sleep(0.005)
        _take_signals_again()


def check_cluster(address: str | None) -> None:
    """Raise UserError if `connected` would find no cluster at the address; a signal ends this as it
    ends anything. A process that is connected already asks nothing."""
    if address is not None and not ray.is_initialized():
        check_address(address)


def _take_signals_again() -> None:
    """Install Python's handlers of signals once more: Ray's own code puts others below them when it
    starts, and none when it ends."""
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            handler = signal.getsignal(number)
            if handler is not None:
                signal.signal(number, handler)


def _start_or_connect(options: RunOptions, folder: Path) -> Any:
    if options.address is not None:
        return _connect(options.address)
    context = _start(folder, dashboard=options.ray_dashboard)
    if ray.util.get_node_ip_address() != LOOPBACK:  # type: ignore[no-untyped-call]
        raise UserError(
            "Ray would listen beyond this machine, as it was imported before this program: import "
            "orchestrator first"
        )
    return context


def _start(folder: Path, *, dashboard: bool) -> Any:
    """Start Ray on this machine, every port of it on loopback."""
    make_token_private()
    # A folder of its own: no worker imports what another one leaves in the folder of temporary
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
    try:
        preloads.mkdir()
        (preloads / f"{PRELOADED}.py").write_text(PRELOADS)
        with _environment(variables):
            return ray.init(
                address="local",
                include_dashboard=dashboard,
                dashboard_host=LOOPBACK,
                object_store_memory=OBJECT_STORE_BYTES,
                log_to_driver=False,
                logging_level=logging.CRITICAL,
                # Not the folder itself: Ray lets every user of the machine write here.
                _temp_dir=str(folder / "ray"),
            )
    except Exception as error:  # Ray raises bare ones too
        raise UserError(
            f"Ray cannot be started on this machine ({first_line(error)}): see that "
            f"{folder.parent} and this machine's memory have room and its cores are not "
            "overloaded, then type the same command again, or name a running cluster with "
            "--address."
        ) from error


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Set these variables of the process within the block."""
    before = {name: os.environ[name] for name in variables if name in os.environ}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            del os.environ[name]
        os.environ.update(before)


def _connect(address: str) -> Any:
    try:
        return ray.init(
            address=address,
            runtime_env={"env_vars": FOR_WORKERS},
            log_to_driver=False,
            logging_level=logging.CRITICAL,
        )
    except (OSError, RuntimeError, ValueError) as error:
        raise UserError(
            f"The Ray cluster at --address {address} cannot be joined from here "
            f"({first_line(error)}): run the command on a machine of the cluster with --address "
            "auto."
        ) from error
