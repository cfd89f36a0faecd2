"""Temporary folders of killed runs, and the processes that work in them.

A run locks a file in its folder; however it dies, the kernel releases the lock.
"""

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
"""Parent of runs' temporary folders if the path of TMPDIR is too long for Ray."""
OWNER = "owner"
"""File that a live run locks. It names the machine, because machines may not share locks."""
FOLDER_NAME = re.compile(PREFIX + r"[a-z0-9_]{8}")
END_S = 5.0
BOOT = Path("/proc/sys/kernel/random/boot_id")


def remove_leftovers() -> int:
    """Remove this user's temporary folders of dead runs, and kill the processes in them.

    Returns the number of removed folders. Does not follow links. Raises nothing.
    """
    bases = {SHORT_BASE}
    with suppress(OSError):  # no folder is writable
        bases.add(tempfile.gettempdir())
    count = 0
    for base in bases:
        with suppress(OSError):
            for folder in Path(base).iterdir():
                count += bool(FOLDER_NAME.fullmatch(folder.name)) and _remove_abandoned(folder)
    return count


def remove_folder(folder: Path) -> None:
    """Kill the processes that work in a run's folder, and remove it."""
    processes = [process for process in psutil.process_iter() if _works_in(process, folder)]
    for process in processes:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(processes, timeout=END_S)
    # The owner file is removed last, so that an interrupted removal can be recognized later.
    with suppress(OSError):
        for path in folder.iterdir():
            shutil.rmtree(path, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)


def machine_names() -> set[str]:
    """Return the host name and the kernel's boot id.

    A host name outlives a restart. Containers that share locks share the boot id.
    """
    names = {os.uname().nodename}
    with suppress(OSError):
        names.add(BOOT.read_text().strip())
    return names


def _remove_abandoned(folder: Path) -> bool:
    with suppress(OSError):
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            return False
        owner = os.open(folder / OWNER, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            if _is_abandoned(owner):
                remove_folder(folder)
        finally:
            os.close(owner)
    return not folder.exists()


def _is_abandoned(owner: int) -> bool:
    """Lock the owner file; return whether its run is dead. Raises OSError if the run lives."""
    status = os.fstat(owner)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        return False
    fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return bool(machine_names() & set(os.read(owner, 4096).decode(errors="replace").split()))


def _works_in(process: psutil.Process, folder: Path) -> bool:
    """Return whether the run of this folder started the process.

    Ray's processes hide their environment, but write a log in the folder.
    """
    with suppress(psutil.Error):
        if process.pid == os.getpid() or process.uids().effective != os.geteuid():
            return False
        if process.environ().get("TMPDIR") == str(folder):
            return True
        # By name, since the path to the folder may contain links.
        return " ".join(process.cmdline()).startswith("ray") and any(
            f"/{folder.name}/" in file.path and file.mode != "r" for file in process.open_files()
        )
    return False
