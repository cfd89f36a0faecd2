"""What Linux' /proc says of a process, and of the boot that it runs in."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class ProcessStat(NamedTuple):
    """Fields of a process's `stat`, as in proc(5)."""

    state: str
    """One letter: Z of a zombie, T or t of one that is stopped, D of one that waits for a disk."""
    start_ticks: str
    """When it started, in clock ticks since boot."""


def process_stat(pid: int) -> ProcessStat | None:
    """None where there is no such process. Raises OSError where this user may not look."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    return ProcessStat(fields[0], fields[19])


def boot_id() -> str:
    """Of this boot of the machine, the same in its containers. Raises OSError where there is no
    Linux."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
