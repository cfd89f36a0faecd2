from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest


@pytest.fixture
def short_base() -> Iterator[Path]:
    base = Path(tempfile.mkdtemp(prefix="lo-", dir="/tmp"))
    yield base
    shutil.rmtree(base)


def mentioning(folder: Path) -> dict[int, str]:
    """Return the command lines of all processes that use `folder`, by pid.

    A process uses the folder if its command line, environment or open files contain the path.
    """
    return {
        int(process.name): line
        for process in Path("/proc").glob("[0-9]*")
        if str(folder) in (line := _read(process / "cmdline")) + _environment_and_links(process)
    }


def _read(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(errors="replace").replace("\0", " ").strip()
    return ""


def _environment_and_links(process: Path) -> str:
    names = [_read(process / "environ")]
    with suppress(OSError):
        for descriptor in (process / "fd").iterdir():
            with suppress(OSError):
                names.append(str(descriptor.readlink()))
    return "\n".join(names)
