"""Where and how a trial runs. Nothing here is part of its identity: nothing changes what is
trained, and what measurements read is known by their names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trainables.config import ContextsFile, Frozen, TextFile
from trainables.corpora import BenchmarkFolder


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """Folders, device and threads of one worker."""

    data_dir: Path | None = None
    """Where corpora lie; None: `data/` in the current directory."""
    device: str = "cpu"
    """`cpu` or `cuda`."""
    threads: int = 1
    """Threads of one trial on a CPU."""
    checkpoint_every_s: float = 30.0
    """Seconds of work that are lost at most when a process dies, or more if checkpoints would take
    over 5% of the time; 0 saves after every step."""
    deterministic: bool = False
    """On a GPU: the same bits every time, at some cost of speed. On a CPU it is always so."""
    layer_files: tuple[TextFile, ...] = ()
    """The files of output layers of the user's own."""
    benchmarks_dir: Path | None = None
    """Where the folder `word-similarity` with the published benchmarks lies; None: in
    `data_dir`."""
    contexts: ContextsFile | None = None
    """The user's own contexts for the likeliest words."""
    benchmarks: BenchmarkFolder | None = None
    """The user's own word-similarity benchmarks."""


class GpuProbe(Frozen):
    """What `trainables.gpu_probe` found on a machine."""

    usable: int
    """GPUs on which trials can run."""
    torch: str
    """Its version."""
    cuda: str | None
    """The version that torch was built for; None without any."""
    capability: tuple[int, int] | None = None
    """The lowest compute capability of these."""
    faults: tuple[str, ...] = ()
    """Why trials would fail on the others, with the fix."""
    triton: str | None = None
    """Note for the reader if trials train without Triton's kernels."""
