"""Peak memory."""

from __future__ import annotations

import contextlib
import re
import resource
import sys
from pathlib import Path

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
UNITS_PER_MIB = 2**20 if sys.platform == "darwin" else 2**10
"""Units of `ru_maxrss`, which are bytes on macOS and KiB elsewhere."""


class PeakMemory:
    """Peak memory of this process, or of its GPU, since construction.

    Only Linux can reset the peak of a process.
    """

    def __init__(self, device: str = "cpu") -> None:
        self.device = device
        if device != "cpu":
            import torch

            torch.cuda.reset_peak_memory_stats()
        else:
            # The file may be missing or forbidden; an overestimated peak should not fail a trial.
            with contextlib.suppress(OSError):
                CLEAR.write_text("5")

    def peak_mib(self) -> float:
        """Return the peak of resident memory, or of allocated GPU memory, in MiB."""
        if self.device != "cpu":
            import torch

            return torch.cuda.max_memory_allocated() / 2**20
        return (
            status_mib("VmHWM")
            or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / UNITS_PER_MIB
        )


def status_mib(field: str) -> float | None:
    """Return a field of /proc/self/status, such as VmRSS, in MiB. None if it is missing."""
    text = STATUS.read_text() if STATUS.exists() else ""
    match = re.search(rf"^{field}:\s*(\d+) kB", text, re.MULTILINE)
    return int(match[1]) / 1024 if match else None
