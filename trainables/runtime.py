"""Settings of a worker. They do not affect training, so they are not part of a trial's id.

A measurement's name identifies its input files.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trainables.config import ContextsFile, Frozen, Goal, UserCode
from trainables.corpora import BenchmarkFolder


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """A worker's folders, device and threads."""

    data_dir: Path | None = None
    """Folder of corpora; None: `data/`."""
    device: str = "cpu"
    """`cpu` or `cuda`."""
    threads: int = 1
    worker: str = ""
    """Name of a worker without a driver, for other processes; empty for all others."""
    checkpoint_every_s: float = 30.0
    """Maximum seconds of work lost when a process dies. Checkpoints are rarer if they would take
    over 5% of the time. 0 saves every step."""
    deterministic: bool = False
    """Make a GPU bitwise reproducible, but slower. A CPU is always reproducible."""
    code: tuple[UserCode, ...] = ()
    """Python files with the user's own trials and output layers."""
    goal: Goal | None = None
    """Metric of the study, by which a search stops a user's own trials early."""
    benchmarks_dir: Path | None = None
    """Folder that contains `word-similarity`, the published benchmarks; None: `data_dir`."""
    contexts: ContextsFile | None = None
    benchmarks: BenchmarkFolder | None = None


class GpuProbe(Frozen):
    """Result of `trainables.gpu_probe` on one host."""

    usable: int
    """Number of GPUs that can run trials."""
    torch: str
    cuda: str | None
    """CUDA version that torch was built for; None: built without CUDA."""
    capability: tuple[int, int] | None = None
    """Lowest compute capability of the usable GPUs."""
    faults: tuple[str, ...] = ()
    """Why trials would fail on the other GPUs, with the fix."""
    triton: str | None = None
    """Note for the user if trials train without Triton kernels."""
