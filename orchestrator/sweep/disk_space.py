"""Check that the trials' files fit on the disk."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from orchestrator.cluster import RunOptions
from orchestrator.forecast import kept_bytes, running_bytes
from orchestrator.storage import FolderStorage
from orchestrator.sweep.announcement import concurrent_trials
from orchestrator.words import byte_count, counted
from trainables.config import AnyConfig
from trainables.corpora import CorpusIdentity
from trainables.errors import UserError


def disk_warning(
    configs: Sequence[AnyConfig], corpus: CorpusIdentity, options: RunOptions
) -> str | None:
    """Return a warning if the files of all these trials do not fit on the disk, or None.

    Raises UserError if not even the trials that run at a time fit.
    """
    storage = options.storage
    if not isinstance(storage, FolderStorage):
        return None
    count = min(len(configs), concurrent_trials(options))
    sizes = sorted(running_bytes(config, corpus) for config in configs)[len(configs) - count :]
    # A resumed trial replaces its old checkpoint, so old checkpoints count as free space.
    checkpoints = [
        path for config in configs for path in storage.trial(config.trial_id).checkpoints()
    ]
    free_bytes = shutil.disk_usage(storage.root).free + sum(map(_size_bytes, checkpoints))
    peak_bytes = sum(sizes)
    if peak_bytes > free_bytes:
        raise UserError(
            f"--storage: {storage} has {byte_count(free_bytes)} left, but "
            f"{counted(count, 'trial')} at a time may need {byte_count(peak_bytes)}. Free space, "
            "use another --storage or lower --max-concurrent."
        )
    final_bytes = sum(kept_bytes(config, corpus) for config in configs)
    if final_bytes + peak_bytes <= free_bytes:
        return None
    return (
        f"{storage} has {byte_count(free_bytes)} left, but {counted(len(configs), 'trial')} will "
        f"keep about {byte_count(final_bytes)}. The sweep stops if the disk fills up. Then free "
        "space and run the same command again."
    )


def _size_bytes(path: Path) -> int:
    # A worker of another command may have removed the file.
    with suppress(FileNotFoundError):
        return path.stat().st_size
    return 0
