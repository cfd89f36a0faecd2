"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
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
