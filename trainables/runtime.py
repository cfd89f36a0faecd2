"""Where and how a trial runs. Nothing here can change its outcome, so nothing here is part of its identity."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trainables.layer_configs import LayerFile


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
    """At most so much work is lost when a process dies."""
    deterministic: bool = False
    """On a GPU: the same bits every time, at some cost of speed. On a CPU it is always so."""
    layer_files: tuple[LayerFile, ...] = ()
    """The files of output layers of the user's own."""


def trial_directory(storage: Path, trial_id: str) -> Path:
    """The folder of a trial below the storage root: its checkpoints, and in the end its result."""
    return storage / "trials" / trial_id[:2] / trial_id
