"""Detect that a part of Ray has died. Calls to Ray might then wait forever."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psutil
import ray

from orchestrator.cluster import ray_private
from orchestrator.cluster.worker_signs import signs
from orchestrator.guard import start_again
from trainables.errors import GO_ON, UserError
from trainables.pulse import repeated

LOOK_S = 0.5
HEAD_AWAY_S = 20.0
# A raylet ends if one of its agents ends.
DIRECTORY, NODE = "gcs_server", "raylet"
Check = Callable[[], str | None]
"""Function that returns why Ray is gone, or None while Ray runs."""

_reason: str | None = None


@contextmanager
def watching(check: Check) -> Iterator[None]:
    """Call `check` in a thread. If Ray is gone, have the guard restart the command."""
    global _reason
    _reason = None

    def watch() -> None:
        global _reason
        _reason = _reason or check()
        if _reason is not None:
            start_again(_reason)

    with repeated(watch, LOOK_S):
        yield


def check_ray() -> None:
    """Raise UserError if Ray is gone and no guard restarts the command."""
    if _reason is not None:
        raise UserError(f"{_reason}: {GO_ON}")


def process_check(*names: str) -> Check:
    """Return a check that child processes of these names still run."""
    processes: dict[str, psutil.Process] = {}

    def check() -> str | None:
        if len(processes) < len(names):
            for child in psutil.Process().children():
                with suppress(psutil.NoSuchProcess):
                    if child.name() in names:
                        processes[child.name()] = child
        dead_names = [name for name, process in processes.items() if not _is_alive(process)]
        return f"Ray's process {dead_names[0]} died" if dead_names else None

    return check


def _is_alive(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def head_check() -> Check:
    """Return a check that the cluster's head answers."""
    last_answer_s = time.monotonic()

    def check() -> str | None:
        nonlocal last_answer_s
        if signs([""]) is not None or ray_private.find(ray_private.HEAD) is None:
            last_answer_s = time.monotonic()
        if time.monotonic() - last_answer_s < HEAD_AWAY_S:
            return None
        address = ray.get_runtime_context().gcs_address
        return f"The head of the Ray cluster, {address}, does not answer any more"

    return check
