from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.storage.storage import FolderStorage
from tests.support.small_disk import change, small_disk
from trainables.errors import UserError


def remove(folder: Path) -> None:
    folder.rmdir()


def replace(folder: Path) -> None:
    folder.rmdir()
    folder.mkdir()


def move_away(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))


def put_a_file_there(folder: Path) -> None:
    folder.rmdir()
    folder.touch()


@pytest.mark.parametrize(
    ("happens", "sentence"),
    [
        (remove, "is gone .No such file or directory.* no more results are recorded"),
        (move_away, "is gone"),
        (replace, "was replaced by another one"),
        (put_a_file_there, "was replaced by another one"),
    ],
)
def test_removed_folder_is_noticed(
    tmp_path: Path, happens: Callable[[Path], None], sentence: str
) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    with FolderStorage(folder).watched() as check:
        check()
        (folder / "trials").mkdir()
        (folder / "trials").rmdir()
        check()
        happens(folder)
        with pytest.raises(
            UserError, match=f"The storage folder {folder} {sentence}.*run the same command again"
        ):
            check()


def test_read_only_folder_is_noticed(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", kib=64) as disk, FolderStorage(disk).watched() as check:
        check()
        change(disk, "ro")
        with pytest.raises(UserError, match="became read-only"):
            check()


def test_missing_folder_is_not_used(tmp_path: Path) -> None:
    with (
        pytest.raises(UserError, match="is gone"),
        FolderStorage(tmp_path / "nowhere").working("a" * 64),
    ):
        raise AssertionError("it was entered")
    assert not (tmp_path / "nowhere").exists()


def test_lost_storage_fails_no_trial(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    with pytest.raises(UserError, match="is gone"), FolderStorage(folder).working("a" * 64):
        remove(folder)
