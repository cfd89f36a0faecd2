"""One Ray for all tests of a process that do not test how Ray starts: starting it takes longer than
most of them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import ray

from orchestrator.cluster import connection, ray_patches
from orchestrator.cluster.connection import END
from orchestrator.cluster.run_options import RunOptions
from orchestrator.storage.storage import FolderStorage

_started = ExitStack()
_init = ray.init


def leave_out_the_dashboard() -> None:
    """From here on this process starts Ray as the product does, but for the dashboard, a third of
    what Ray takes."""
    ray.init = _init_without_dashboard  # type: ignore[assignment]


def _init_without_dashboard(**options: Any) -> Any:
    return _init(
        **options | ({"include_dashboard": False} if "include_dashboard" in options else {})
    )


def start_ray() -> str:
    """Start Ray, unless it is up; returns its address, at which drivers in other processes join
    it."""
    if not ray.is_initialized():
        leave_out_the_dashboard()
        options = RunOptions(storage=FolderStorage(Path("/nonexistent")))
        _started.enter_context(connection.connected(options, lambda _: None))
    return str(ray.get_runtime_context().gcs_address)


def join_ray(address: str) -> None:
    """Have what this process runs use that Ray."""
    with ray_patches.on_loopback():
        ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)


def end_ray() -> None:
    """Before a test that needs a Ray of its own, and when all tests are done."""
    _started.close()
    for thread in threading.enumerate():
        if thread.name == END:
            thread.join(
                120
            )  # the product leaves it alone with a Ray that takes long, as its process ends


@contextmanager
def without_ray() -> Iterator[None]:
    """A command that starts or uses Ray meanwhile fails."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "ray", None)
        yield
