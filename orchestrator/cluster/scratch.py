"""Temporary folders of a run."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from orchestrator.guard import OWNER, PREFIX, SHORT_BASE, machine_names, remove_folder
from trainables.errors import UserError

LONGEST_BASE = 24
"""Longest parent path in bytes. Ray's sockets add 83, and a socket's path has at most 107."""


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Create a temporary folder for Ray, and yield its path.

    The path is short enough for Ray's sockets. Other runs do not remove the folder. On exit,
    removes the folder and kills the processes that work in it. Raises UserError if no folder can be
    created.
    """
    base = SHORT_BASE
    try:
        if len(os.fsencode(tempfile.gettempdir())) <= LONGEST_BASE:
            base = tempfile.gettempdir()
        folder, owner = _locked_folder(base)
    except OSError as error:
        raise UserError(
            f"Ray's temporary folder cannot be created in {base} ({error.strerror}). Free space "
            f"there, or set TMPDIR to a folder of at most {LONGEST_BASE} characters."
        ) from error
    try:
        yield folder
    finally:
        remove_folder(folder)
        os.close(owner)


def _locked_folder(base: str) -> tuple[Path, int]:
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
    draft = folder / f"{OWNER}.unfinished"
    try:
        owner = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        with suppress(OSError):
            # On a file system without locks, other processes cannot lock it either.
            fcntl.flock(owner, fcntl.LOCK_EX)
        os.write(owner, "\n".join(sorted(machine_names())).encode())
        # Renamed last, so that the owner file exists only while it is locked.
        draft.rename(folder / OWNER)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder, owner
