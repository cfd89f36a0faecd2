"""Peak memory."""

from __future__ import annotations

import contextlib
import resource
from pathlib import Path

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class PeakMemory:
    """Peak memory of this process, or of its GPU, since construction.

    For a process, only Linux can reset the peak.
    """

    def __init__(self, device: str = "cpu") -> None:
        self.device = device
        if device != "cpu":
            import torch

            torch.cuda.reset_peak_memory_stats()
        elif CLEAR.exists():
            # A container may forbid it; an overestimated peak should not fail a trial.
            with contextlib.suppress(OSError):
                CLEAR.write_text("5")

    def peak_mib(self) -> float:
        """Return the peak in MiB: resident, or allocated on the GPU."""
        if self.device != "cpu":
            import torch

            return torch.cuda.max_memory_allocated() / 2**20
        peak = status_mib("VmHWM")
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 if peak is None else peak


def status_mib(field: str) -> float | None:
    """Return a /proc/self/status field in MiB (VmRSS: now, VmHWM: peak); None if not on Linux."""
    if not STATUS.exists():
        return None
    lines = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
    return int(lines[field].split()[0]) / 1024
