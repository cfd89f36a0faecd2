"""One Ray for all tests of a process that do not test how Ray starts: starting it takes longer than most of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import ray

from orchestrator.cluster import connection
from orchestrator.cluster.run_options import RunOptions
from orchestrator.storage.storage import FolderStorage

notes: list[str] = []
"""What the user would have been told when it started."""
_started = ExitStack()


def start_ray() -> None:
    """Start Ray as the product does, unless it is up."""
    if not ray.is_initialized():
        notes.clear()
        _started.enter_context(
            connection.connected(RunOptions(storage=FolderStorage(Path("/nonexistent"))), notes.append)
        )


def end_ray() -> None:
    """Before a test that needs a Ray of its own, and when all tests are done."""
    _started.close()


@contextmanager
def without_ray() -> Iterator[None]:
    """A command that starts or uses Ray meanwhile fails."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "ray", None)
        yield
