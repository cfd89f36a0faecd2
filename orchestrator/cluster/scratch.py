"""The temporary folders of a run."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from orchestrator.guard import OWNER, PREFIX, SHORT_BASE, machine, remove_folder
from trainables.errors import UserError

LONGEST_BASE = 24
"""Bytes of a folder in which Ray can start: it puts sockets 83 bytes further down, and a socket's
path ends at 107."""


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A temporary folder with a path short enough for Ray's sockets, which nobody else removes
    while this lasts.

    In the end it is removed, and what still works in it is killed. Raises UserError where none can
    be made."""
    base = SHORT_BASE
    try:
        if len(os.fsencode(tempfile.gettempdir())) <= LONGEST_BASE:
            base = tempfile.gettempdir()
        folder, owner = _locked_folder(base)
    except OSError as error:
        raise UserError(
            f"Ray needs a temporary folder, and in {base} none can be made ({error.strerror}): "
            f"free space there, or name another folder, of at most {LONGEST_BASE} characters, by "
            "the environment variable TMPDIR."
        ) from error
    try:
        yield folder
    finally:
        remove_folder(folder)
        os.close(owner)


def _locked_folder(base: str) -> tuple[Path, int]:
    """A new folder, and the descriptor that keeps its owner's file locked. Raises OSError."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
    unfinished = folder / f"{OWNER}.unfinished"
    try:
        owner = os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        with suppress(OSError):
            # Where a file system has no locks, nobody else gets this one either.
            fcntl.flock(owner, fcntl.LOCK_EX)
        os.write(owner, "\n".join(sorted(machine())).encode())
        # By its name it is there only when it is locked.
        unfinished.rename(folder / OWNER)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder, owner
