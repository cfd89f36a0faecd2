from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.cluster import RunOptions
from orchestrator.forecast import running_bytes
from orchestrator.storage import Bucket, FolderStorage
from orchestrator.storage.object_storage import ObjectStorage
from orchestrator.sweep.disk_space import disk_warning
from tests.support import tiny_trial
from tests.support.small_disk import small_disk
from trainables.errors import UserError

CORPUS = tiny_trial.IDENTITY
CONFIGS = [tiny_trial.trial().model_copy(update={"seed": seed}) for seed in range(20)]


def options(folder: Path) -> RunOptions:
    return RunOptions(storage=FolderStorage(folder), max_concurrent=1)


def test_small_disk_is_refused(tmp_path: Path) -> None:
    with (
        small_disk(tmp_path / "disk", kib=128) as disk,
        pytest.raises(UserError, match=r"0\.1 MB left"),
    ):
        disk_warning(CONFIGS, CORPUS, options(disk))


def test_existing_checkpoints_reduce_needed_space(tmp_path: Path) -> None:
    needed_kib = running_bytes(CONFIGS[0], CORPUS) // 1024 + 20
    with small_disk(tmp_path / "disk", kib=needed_kib) as disk:
        folder = FolderStorage(disk).trial(CONFIGS[0].trial_id)
        folder.path.mkdir(parents=True)
        for step in (1, 2):
            folder.checkpoint(step).write_bytes(bytes(100_000))
        assert disk_warning(CONFIGS[:1], CORPUS, options(disk)) is not None
        with pytest.raises(UserError, match="MB left"):
            disk_warning(CONFIGS[1:2], CORPUS, options(disk))


def test_vanished_checkpoint_needs_no_space(tmp_path: Path) -> None:
    folder = FolderStorage(tmp_path).trial(CONFIGS[0].trial_id)
    folder.path.mkdir(parents=True)
    # This listed file no longer exists when its size is read.
    folder.checkpoint(1).symlink_to(tmp_path / "removed")
    assert disk_warning(CONFIGS[:1], CORPUS, options(tmp_path)) is None


def test_nearly_full_disk_is_reported(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", kib=1024) as disk:
        warning = disk_warning(CONFIGS, CORPUS, options(disk))
        assert warning is not None and "1.0 MB left" in warning and "1.3 MB" in warning
        assert disk_warning(CONFIGS[:5], CORPUS, options(disk)) is None
        assert disk_warning([], CORPUS, options(disk)) is None


def test_object_store_space_is_unknown() -> None:
    storage = ObjectStorage(Bucket("s3://somewhere/else"))
    assert disk_warning(CONFIGS, CORPUS, RunOptions(storage=storage)) is None
