"""Files are written whole or not at all, whatever else happens."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.small_disk import small_files
from trainables.trial_folder.files import write_file

ROOT = Path(__file__).parents[3]
SIZE = 300_000
WRITER = """
import sys
from pathlib import Path
from trainables.trial_folder.files import write_file
while True:
    write_file(Path(sys.argv[1]), sys.argv[2].encode() * 300_000)
    print("written", flush=True)
"""


def start(path: Path, letter: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), letter], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )


def test_processes_that_write_one_file_never_show_a_mixture_even_killed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    writers = [start(path, letter) for letter in "ab"]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "written\n"
    seen = set()
    until = time.monotonic() + 1
    while time.monotonic() < until:
        seen.add(path.read_bytes())
    for writer in writers:
        assert writer.poll() is None, "it still writes"
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
    seen.add(path.read_bytes())
    assert seen <= {b"a" * SIZE, b"b" * SIZE}


def test_threads_that_write_one_file_do_not_disturb_each_other(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(lambda i: write_file(path, b"%d" % (i % 10) * 1000), range(100)):
            pass
    assert len(set(path.read_bytes())) == 1
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_fails_keeps_the_old_content_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with small_files(1_000), pytest.raises(OSError, match="File too large"):
        write_file(path, b"n" * SIZE)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_writing_a_file_needs_no_torch() -> None:
    modules = "('torch', 'numpy', 'pydantic')"
    code = f"import sys, trainables.trial_folder.files; print([m for m in {modules} if m in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
