"""Remove unfinished files of killed processes."""

from __future__ import annotations

import os
import re
import stat
import time
from contextlib import suppress
from pathlib import Path

import psutil

# Names of temporary files, and of files that test whether a folder is writable.
UNFINISHED = re.compile(
    r"\..+\.(?P<process>\d+)-[0-9a-f]{8}\.tmp(-wal|-shm)?|\.writable-[0-9a-f]{16}"
)
# After this time without a change, no process on any host can still be writing a file.
IDLE_S = 600.0


def remove_unfinished(folder: Path) -> int:
    """Remove unfinished files of this user's dead processes below `folder`; return their number.

    Files younger than `IDLE_S` stay.
    """
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
