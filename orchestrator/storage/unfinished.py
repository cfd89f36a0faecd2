"""Files that a killed process did not finish."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

UNFINISHED = re.compile(
    r"\..+\.(?P<process>\d+)-[0-9a-f]{8}\.tmp(-wal|-shm)?|\.writable-[0-9a-f]{16}"
)
"""The names under which files are written before they get their own, and those of files that only
prove a point. What a storage has marked lies there as long as the sweep, and is written once."""
IDLE_S = 600.0
"""Who has not written to a file for so long is gone, on whatever machine it ran."""


def remove_unfinished(folder: Path) -> list[int]:
    """Remove this user's unfinished files of processes that are gone, at any depth; their sizes in
    bytes.

    A folder shared by machines may hold files of processes elsewhere: of no file is this known
    before `IDLE_S`."""
    sizes = []
    for path in _unfinished(folder):
        with suppress(OSError):
            size_bytes = path.lstat().st_size
            path.unlink()
            sizes.append(size_bytes)
    return sizes


def _unfinished(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        for name in names:
            match = UNFINISHED.fullmatch(name)
            with suppress(OSError):
                if match and not _may_be_written(Path(parent, name), match["process"]):
                    yield Path(parent, name)


def _may_be_written(path: Path, process: str | None) -> bool:
    status = path.lstat()
    return (
        not stat.S_ISREG(status.st_mode)
        or status.st_uid != os.geteuid()
        or time.time() - status.st_mtime < IDLE_S
        or (process is not None and psutil.pid_exists(int(process)))
    )
