"""What killed runs left on this machine: temporary folders, and processes that work in them.

A run's folder holds a file that its process has locked; the kernel gives the lock back, however
that process dies."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

import psutil

PREFIX = "sweep-"
SHORT_BASE = "/tmp"
"""Where runs put their folders when the path of TMPDIR is too long for Ray."""
OWNER = "owner"
"""The file that is locked. It names the machine: a folder may be shared by machines that do not see
each other's locks."""
FOLDER = re.compile(PREFIX + r"[a-z0-9_]{8}")
"""The names of such folders."""
END_S = 5.0
"""How long killed processes are waited for."""
BOOT = Path("/proc/sys/kernel/random/boot_id")


def remove_leftovers() -> int:
    """Remove this user's temporary folders whose runs are gone, and kill the processes that work in
    them; return how many folders were removed.

    What lives, what is another user's and what a link leads to stays. Raises nothing.
    """
    bases = {SHORT_BASE}
    with suppress(OSError):  # nowhere can anything be written
        bases.add(tempfile.gettempdir())
    count = 0
    for base in bases:
        with suppress(OSError):
            for folder in Path(base).iterdir():
                count += bool(FOLDER.fullmatch(folder.name)) and _remove_abandoned(folder)
    return count


def remove_folder(folder: Path) -> None:
    """Kill what works in a run's folder, and remove the folder."""
    processes = [process for process in psutil.process_iter() if _works_in(process, folder)]
    for process in processes:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(processes, timeout=END_S)
    # The owner's file goes last: should this process be killed, the folder can still be told from
    # others.
    with suppress(OSError):
        for path in folder.iterdir():
            shutil.rmtree(path, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)


def machine() -> set[str]:
    """Return the names of this machine: one that lasts, and one that its containers, which share
    its locks, share too."""
    names = {os.uname().nodename}
    with suppress(OSError):
        names.add(BOOT.read_text().strip())
    return names


def _remove_abandoned(folder: Path) -> bool:
    """Remove the folder unless its run may live; return whether it is gone."""
    with suppress(OSError):
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            return False
        owner = os.open(folder / OWNER, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            if _is_given_up(owner):
                remove_folder(folder)
        finally:
            os.close(owner)
    return not folder.exists()


def _is_given_up(owner: int) -> bool:
    """Return whether who locked an owner's file is gone; then this process has the lock. Raises
    OSError if it has not."""
    status = os.fstat(owner)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        return False
    fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return bool(machine() & set(os.read(owner, 4096).decode(errors="replace").split()))


def _works_in(process: psutil.Process, folder: Path) -> bool:
    """Return whether the run that made the folder started the process: it has its temporary files
    there. A process of Ray has written its title over its environment, and has a log open there.

    Who reads a log there, or has joined the run's Ray from elsewhere, was not started by it.
    """
    with suppress(psutil.Error):
        if process.pid == os.getpid() or process.uids().effective != os.geteuid():
            return False
        if process.environ().get("TMPDIR") == str(folder):
            return True
        # By the folder's name, as the path to it may lead over links.
        return " ".join(process.cmdline()).startswith("ray") and any(
            f"/{folder.name}/" in file.path and file.mode != "r" for file in process.open_files()
        )
    return False
