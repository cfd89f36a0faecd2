"""One Ray for all tests of a process that do not test how Ray starts: starting it takes longer than most of them."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import ray

from orchestrator.cluster.connection import connected
from orchestrator.cluster.run_options import RunOptions

notes: list[str] = []
"""What the user would have been told when it started."""
_started = ExitStack()


def start_ray() -> None:
    """Start Ray as the product does, unless it is up."""
    if not ray.is_initialized():
        notes.clear()
        _started.enter_context(connected(RunOptions(storage=Path("/nonexistent")), notes.append))


def end_ray() -> None:
    """Before a test that needs a Ray of its own, and when all tests are done."""
    _started.close()
