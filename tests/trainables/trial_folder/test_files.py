from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.processes import Process, Report
from tests.support.small_disk import small_files
from trainables.trial_folder.files import append, write_file

SIZE = 300_000


def write_again_and_again(report: Report, path: Path, content: bytes) -> None:
    write_file(path, content)
    report("written")
    while True:
        write_file(path, content)


def test_killed_writers_leave_whole_files(tmp_path: Path) -> None:
    path = tmp_path / "file"
    contents = {b"a" * SIZE, b"b" * SIZE}
    writers = [Process(tmp_path, write_again_and_again, path, content) for content in contents]
    for writer in writers:
        assert writer.receive() == "written"
    seen = set()
    until = time.monotonic() + 1
    while time.monotonic() < until:
        seen.add(path.read_bytes())
    for writer in writers:
        writer.kill()
    seen.add(path.read_bytes())
    assert seen <= contents


def test_threads_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(lambda i: write_file(path, b"%d" % (i % 10) * 1000), range(100)):
            pass
    assert len(set(path.read_bytes())) == 1
    assert list(tmp_path.iterdir()) == [path]


def test_short_append_is_continued(tmp_path: Path) -> None:
    """The kernel cuts a long line at the size limit. Then `append` tries to write the rest."""
    path = tmp_path / "log"
    append(path, b"first\n")
    with small_files(SIZE), pytest.raises(OSError, match="too large"):
        append(path, b"x" * 2 * SIZE)
    assert path.read_bytes() == b"first\n".ljust(SIZE, b"x")


def test_failed_write_keeps_old_content(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with small_files(1_000), pytest.raises(OSError, match="File too large"):
        write_file(path, b"n" * SIZE)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
