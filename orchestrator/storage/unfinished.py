"""Files that a killed process did not finish."""

from __future__ import annotations

import os
import re
import stat
import time
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


def remove_unfinished(folder: Path) -> int:
    """Remove this user's unfinished files of processes that are gone, at any depth; return how many
    there were.

    A folder shared by machines may hold files of processes elsewhere: no file is known to be
    unfinished before `IDLE_S`."""
    count = 0
    for path in folder.rglob(".*"):
        match = UNFINISHED.fullmatch(path.name)
        with suppress(OSError):
            if match and not _may_be_written(path, match["process"]):
                path.unlink()
                count += 1
    return count


def _may_be_written(path: Path, process: str | None) -> bool:
    status = path.lstat()
    return (
        not stat.S_ISREG(status.st_mode)
        or status.st_uid != os.geteuid()
        or time.time() - status.st_mtime < IDLE_S
        or (process is not None and psutil.pid_exists(int(process)))
    )
