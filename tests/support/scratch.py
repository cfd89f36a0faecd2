"""A place for temporary folders that a test has to itself, with a path as short as Ray needs it;
what is left there."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest


@pytest.fixture
def short_base() -> Iterator[Path]:
    """A folder for temporary folders."""
    base = Path(tempfile.mkdtemp(prefix="lo-", dir="/tmp"))
    yield base
    shutil.rmtree(base)


def mentioning(path: Path) -> set[int]:
    """Every process that has the path in its command, its environment or the names of its open
    files."""
    return {
        int(process.name)
        for process in Path("/proc").glob("[0-9]*")
        if str(path) in _shown(process)
    }


def _shown(process: Path) -> str:
    shown = []
    for name in ("cmdline", "environ"):
        with suppress(OSError):
            shown.append((process / name).read_text(errors="replace"))
    with suppress(OSError):
        for descriptor in (process / "fd").iterdir():
            with suppress(OSError):
                shown.append(str(descriptor.readlink()))
    return "\n".join(shown)
