from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from orchestrator.storage.storage import FolderStorage
from orchestrator.storage.unfinished import IDLE_S, remove_unfinished
from tests.support.command import ROOT

DIES = """
import os, signal, sys
from pathlib import Path
from trainables.trial_folder import write_file
os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
write_file(Path(sys.argv[1]), b"x" * 1000)
"""


def age(path: Path, seconds: float) -> Path:
    written_s = path.stat().st_mtime - seconds
    os.utime(path, (written_s, written_s))
    return path


def test_unfinished_files_are_removed(tmp_path: Path) -> None:
    result = tmp_path / "trials" / "ab" / "result.json"
    result.parent.mkdir(parents=True)
    died = subprocess.run([sys.executable, "-c", DIES, result], cwd=ROOT, check=False)
    assert died.returncode == -signal.SIGKILL
    (unfinished_file,) = result.parent.iterdir()
    assert remove_unfinished(tmp_path) == 0, "another machine may still be writing the file"
    age(unfinished_file, IDLE_S + 60)
    assert remove_unfinished(tmp_path) == 1
    assert [*result.parent.iterdir()] == []


def test_other_files_and_links_stay(tmp_path: Path) -> None:
    target = tmp_path / "target"
    names = [
        "result.json",
        ".hidden",
        f".result.json.{os.getpid()}-0123abcd.tmp",
        ".result.json.tmp",
        ".writable-x",
    ]
    for path in [target, *(tmp_path / name for name in names)]:
        path.write_text("kept")
        age(path, IDLE_S + 60)
    (tmp_path / f".writable-{'0' * 16}").symlink_to(target)
    before = sorted(tmp_path.iterdir())
    assert remove_unfinished(tmp_path) == 0
    assert sorted(tmp_path.iterdir()) == before


def test_storage_marker_stays_during_sweep(tmp_path: Path) -> None:
    storage = FolderStorage(tmp_path)
    with storage.marked() as marker:
        age(tmp_path / marker, IDLE_S + 60)
        assert remove_unfinished(tmp_path) == 0
        assert storage.problem(marker) is None
    assert [*tmp_path.iterdir()] == []


def test_missing_folder_holds_nothing(tmp_path: Path) -> None:
    assert remove_unfinished(tmp_path / "nothing") == 0
