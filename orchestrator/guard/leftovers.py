"""What runs that were killed left on this machine: temporary folders, and processes that work in
them.

A run's folder holds a file that its process has locked; the kernel gives the lock back, however
that process dies. This file needs the standard library alone: whoever looks after a run that died
need not wait for Ray."""

from __future__ import annotations

import fcntl
import os
import re
import select
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from orchestrator.guard.proc import boot_id

PREFIX = "sweep-"
SHORT_BASE = "/tmp"
"""Where runs put their folders when the path of TMPDIR is too long for Ray."""
OWNER = "owner"
"""The file that is locked. It names the machine: a folder may be shared by some that do not see
each other's locks."""
FOLDER = re.compile(PREFIX + r"[a-z0-9_]{8}")
"""The names of such folders."""
END_S = 5.0
"""How long killed processes are waited for."""


@dataclass(frozen=True)
class Leftovers:
    """What was removed."""

    folders: int
    size_bytes: int
    processes: int


def remove_leftovers() -> Leftovers:
    """Remove this user's temporary folders whose runs are gone, and kill the processes that work in
    them.

    What lives, what is another user's and what a link leads to stays. Raises nothing.
    """
    bases = {SHORT_BASE}
    with suppress(OSError):  # nowhere can anything be written
        bases.add(tempfile.gettempdir())
    folders = [folder for base in bases for folder in _folders_in(base)]
    removals = [removal for removal in map(_remove_abandoned, folders) if removal is not None]
    return Leftovers(
        len(removals),
        sum(size for size, _ in removals),
        sum(processes for _, processes in removals),
    )


def remove_folder(folder: Path) -> tuple[int, int]:
    """Kill what works in a run's folder, and remove that; its size in bytes, and how many processes
    there were."""
    processes = _kill_all(folder)
    size_bytes = _size_bytes(folder)
    with suppress(OSError), _opened(folder) as handle:
        for name in os.listdir(handle):  # noqa: PTH208  (of a descriptor)
            # The owner's file goes last: should this be killed, the folder can still be told from
            # others.
            shutil.rmtree(name, ignore_errors=True, dir_fd=handle)
    shutil.rmtree(folder, ignore_errors=True)
    return size_bytes, processes


def machine() -> set[str]:
    """Names of this machine: one that lasts, and one that its containers, which share its locks,
    share too."""
    names = {os.uname().nodename}
    with suppress(OSError):
        names.add(boot_id())
    return names


def _folders_in(base: str) -> Iterator[Path]:
    with suppress(OSError), os.scandir(base) as entries:
        for entry in entries:
            if FOLDER.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                yield Path(entry.path)


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """A descriptor of a folder of this user; raises OSError where it is none, or a link to one."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(handle).st_uid != os.geteuid():
            raise PermissionError(f"{folder} is another user's")
        yield handle
    finally:
        os.close(handle)


def _remove_abandoned(folder: Path) -> tuple[int, int] | None:
    """See `remove_folder`; None where the run may live, and where the folder could not be
    removed."""
    removed = None
    with suppress(OSError), _opened(folder) as handle:
        owner = os.open(OWNER, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=handle)
        try:
            if _is_given_up(owner):
                removed = remove_folder(folder)
        finally:
            os.close(owner)
    return None if folder.exists() else removed


def _is_given_up(owner: int) -> bool:
    """Whether who locked an owner's file is gone; then this process has the lock. Raises OSError
    where it has not."""
    status = os.fstat(owner)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        return False
    fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return bool(machine() & set(os.read(owner, 4096).decode(errors="replace").split()))


def _kill_all(folder: Path) -> int:
    """Kill the processes that work in a folder, and wait until they are gone; how many there
    were."""
    processes = _working_in(folder)
    handles = []
    for process in processes:
        # Looked at once more through a handle: the number may be another process's by now.
        with suppress(OSError):
            handles.append(os.pidfd_open(process))
            if _works_in(process, folder):
                signal.pidfd_send_signal(handles[-1], signal.SIGKILL)
    deadline_s = time.monotonic() + END_S
    for handle in handles:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        poll.poll(1000 * max(0.0, deadline_s - time.monotonic()))
        os.close(handle)
    return len(processes)


def _working_in(folder: Path) -> list[int]:
    """The processes of this user, other than this one, that work in a folder."""
    with suppress(OSError):
        processes = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
        return [
            process
            for process in processes
            if process != os.getpid() and _works_in(process, folder)
        ]
    return []


def _works_in(process: int, folder: Path) -> bool:
    """Whether it was started by the run that made the folder: it has its temporary files there, or
    is one of Ray's own that have written their titles over their environments, and has a file there
    open for writing.

    Who reads a log there, or has joined the run's Ray from elsewhere, was not.
    """
    at = Path("/proc", str(process))
    with suppress(OSError):
        if at.stat().st_uid != os.geteuid():
            return False
        if f"TMPDIR={folder}".encode() in (at / "environ").read_bytes().split(b"\0"):
            return True
        titled = (at / "cmdline").read_bytes().startswith(b"ray")
        return titled and any(
            _is_written_below(folder, descriptor) for descriptor in (at / "fd").iterdir()
        )
    return False


def _is_written_below(folder: Path, descriptor: Path) -> bool:
    # By the folder's name, as the path to it may lead over links.
    with suppress(OSError):
        return f"/{folder.name}/" in str(descriptor.readlink()) and bool(
            descriptor.lstat().st_mode & stat.S_IWUSR
        )
    return False


def _size_bytes(folder: Path) -> int:
    """What its files take on the disk."""
    size_bytes = 0
    for parent, _, files in os.walk(folder):
        for name in files:
            with suppress(OSError):
                size_bytes += Path(parent, name).lstat().st_blocks * 512
    return size_bytes
