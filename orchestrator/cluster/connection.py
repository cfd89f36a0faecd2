"""The Ray cluster of a sweep, started or joined."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import ray

from orchestrator.cluster import ray_private
from orchestrator.cluster.address import check_address
from orchestrator.cluster.environment import FOR_WORKERS, make_token_private, token_path
from orchestrator.cluster.ray_watch import DIRECTORY, NODE, head_check, process_check, watching
from orchestrator.cluster.run_options import RunOptions
from orchestrator.cluster.scratch import scratch_folder
from orchestrator.cluster.shared_connection import hold_open
from orchestrator.guard import SIGNALS, patient
from trainables.errors import UserError, first_line

# Ray's default is a third of the memory.
OBJECT_STORE_BYTES = 2**27
START_S = 300.0
END_S = 6.0
THREAD = "ray"
LOOPBACK = "127.0.0.1"
PRELOAD_MODULE = "preloaded_by_workers"
# A module of its own, because Ray's workers import it before they can import this project.
PRELOADS = """import gc

gc.disable()
try:
    import torch, ray.tune, scipy.linalg, pydantic
finally:
    gc.freeze()
    gc.enable()
"""


@contextmanager
def connected(options: RunOptions, note: Callable[[str], None]) -> Iterator[None]:
    """Connect to the cluster at `options.address`, or start one here, until the context ends.

    If this process is already connected, that connection is used and stays open.
    """
    ray_private.adapt_ray(starts_here=options.address is None)
    if ray.is_initialized():
        yield
        return
    with hold_open(_connected(options, note)):
        yield


@contextmanager
def _connected(options: RunOptions, note: Callable[[str], None]) -> Iterator[None]:
    for name in ("ray", "ray.tune"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    for loss in ray_private.losses():
        note(loss)
    # Ray installs no signal handlers outside the main thread. Its processes end with the thread
    # that started them, so one thread starts and ends Ray.
    thread = ThreadPoolExecutor(1, thread_name_prefix=THREAD)
    with scratch_folder() as folder:
        try:
            # Ray waits a minute for a dead directory; it reports a dead raylet itself.
            with watching(process_check(DIRECTORY)), patient(START_S):
                context = thread.submit(_start_or_connect, options, folder).result()
            _take_signals_again()
            if context.dashboard_url:
                note(
                    f"Ray dashboard: http://{context.dashboard_url} (log in with the token in "
                    f"{token_path()})."
                )
            starts_here = options.address is None
            with watching(process_check(DIRECTORY, NODE) if starts_here else head_check()):
                yield
        finally:
            _end_ray(thread)


def _end_ray(thread: ThreadPoolExecutor) -> None:
    # `ray.shutdown` may never end after a part of Ray died.
    shutdown, deadline_s = thread.submit(ray.shutdown), time.monotonic() + END_S
    thread.shutdown(wait=False)
    while not shutdown.done() and time.monotonic() < deadline_s:
        time.sleep(0.005)
        _take_signals_again()


def check_cluster(address: str | None) -> None:
    """Raise UserError if `connected` would find no cluster. A signal interrupts the check."""
    if address is not None and not ray.is_initialized():
        check_address(address)


def _take_signals_again() -> None:
    """Restore Python's handlers, which Ray replaces at its start and removes at its end."""
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
            "Ray was imported before orchestrator and would listen on the network. Import "
            "orchestrator first."
        )
    return context


def _start(folder: Path, *, dashboard: bool) -> Any:
    if dashboard and find_spec("aiohttp_cors") is None:
        raise UserError(
            "--ray-dashboard: package aiohttp_cors is missing. In this project's folder, type: "
            "pip install '.[dashboard]'"
        )
    make_token_private()
    # A separate folder, so that no worker imports another's temporary file.
    preloads = folder / "preload"
    paths = [str(preloads), *filter(None, [os.environ.get("PYTHONPATH")])]
    # Ray's dashboard puts sockets in TMPDIR too. In another folder, their path may be too
    # long, or the sockets remain.
    variables = {
        "TMPDIR": str(folder),
        "PYTHONPATH": os.pathsep.join(paths),
        "RAY_preload_python_modules": PRELOAD_MODULE,
    }
    try:
        preloads.mkdir()
        (preloads / f"{PRELOAD_MODULE}.py").write_text(PRELOADS)
        with _environment(variables):
            return ray.init(
                address="local",
                include_dashboard=dashboard,
                dashboard_host=LOOPBACK,
                object_store_memory=OBJECT_STORE_BYTES,
                log_to_driver=False,
                logging_level=logging.CRITICAL,
                # Not the folder itself: Ray makes this one writable for every user of the machine.
                _temp_dir=str(folder / "ray"),
            )
    except Exception as error:  # Ray also raises plain Exceptions
        raise UserError(
            f"Ray cannot start on this machine ({first_line(error)}). Free memory, cores and space "
            f"in {folder.parent}, or use a running cluster (--address)."
        ) from error


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    old_values = {name: os.environ[name] for name in variables if name in os.environ}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            del os.environ[name]
        os.environ.update(old_values)


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
            f"--address: cannot join the Ray cluster at {address} from here ({first_line(error)}). "
            "Run the command on a machine of the cluster with --address auto."
        ) from error
