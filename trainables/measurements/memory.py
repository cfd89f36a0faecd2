"""The most memory that a stretch of work needed."""

from __future__ import annotations

import contextlib
import resource
from pathlib import Path

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class PeakMemory:
    """Peak memory of this process, or of its GPU, from the construction of this object on.

    Where the kernel cannot forget an earlier peak (only Linux can), it is the peak of the process'
    whole life."""

    def __init__(self, device: str = "cpu") -> None:
        self.device = device
        if device != "cpu":
            import torch

            torch.cuda.reset_peak_memory_stats()
        elif CLEAR.exists():
            # A container may forbid it; a peak that is too high is no reason to fail a trial.
            with contextlib.suppress(OSError):
                CLEAR.write_text("5")

    def peak_mib(self) -> float:
        """The peak so far, in MiB: resident memory of the process, or what was allocated on the
        GPU."""
        if self.device != "cpu":
            import torch

            return torch.cuda.max_memory_allocated() / 2**20
        peak = status_mib("VmHWM")
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 if peak is None else peak


def status_mib(field: str) -> float | None:
    """A line of /proc/self/status in MiB (VmRSS: resident now, VmHWM: at most); None where there is
    no such file."""
    if not STATUS.exists():
        return None
    lines = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
    return int(lines[field].split()[0]) / 1024
