"""Memory of this machine, or of its container if the container's memory is limited."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")
# A machine is full if less than this share of its memory is free.
FULL_BELOW = 0.05


class MachineMemory(NamedTuple):
    """Memory of a machine; unknown values are 0."""

    total_bytes: int = 0
    free_bytes: int = 0
    kills: int = 0
    """Number of processes that the kernel has killed to free memory."""

    def ran_out_since(self, earlier: MachineMemory) -> bool:
        """Return whether memory was full at `earlier`, or the kernel has since killed a process."""
        return self.kills > earlier.kills or earlier.free_bytes < FULL_BELOW * earlier.total_bytes


def machine_memory(proc: Path = PROC, cgroups: Path = CGROUPS) -> MachineMemory:
    """Return the machine's current memory."""
    meminfo, kills = _numbers(proc / "meminfo"), _numbers(proc / "vmstat").get("oom_kill", 0)
    total, free = 1024 * meminfo.get("MemTotal:", 0), 1024 * meminfo.get("MemAvailable:", 0)
    for group in _groups(proc, cgroups):
        kills += _numbers(group / "memory.events").get("oom_kill", 0)
        limit, used = (_number(group / name) for name in ("memory.max", "memory.current"))
        if limit is not None and used is not None:
            # The kernel frees its file cache if memory is needed.
            used -= _numbers(group / "memory.stat").get("inactive_file", 0)
            total, free = min(total, limit), min(free, max(0, limit - used))
    return MachineMemory(total, free, kills)


def _groups(proc: Path, cgroups: Path) -> Iterator[Path]:
    for line in _lines(proc / "self/cgroup"):
        if line.startswith("0::"):
            group = Path(line.removeprefix("0::").lstrip("/"))
            yield from (cgroups / path for path in (group, *group.parents))


def _numbers(path: Path) -> dict[str, int]:
    pairs = (line.split() for line in _lines(path))
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) > 1}


def _number(path: Path) -> int | None:
    lines = _lines(path)
    return int(lines[0]) if lines and lines[0].isdigit() else None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
