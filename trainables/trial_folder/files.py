"""Files that are written whole or not at all, and folders that one process at a time works in."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CANNOT_SYNC_FOLDERS = (errno.EINVAL, errno.EACCES)
"""What a file system answers that has no way to sync a folder, and a folder that may be written to but not listed."""


def write_file(path: Path, content: bytes) -> None:
    """Write a file so that, whatever happens, `path` holds either its old or its new content; the new one is on disk
    when this returns.

    Processes and threads may write the same path at the same time: the last one has the last word, and none fails. A
    process that is killed in between leaves its unfinished `.NAME.PID-*.tmp`.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Put the names in a folder on disk: a file's own sync does not cover what it is called."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in CANNOT_SYNC_FOLDERS:
            raise


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Have a folder to oneself; the kernel gives the lock back when the process dies."""
    with (directory / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
