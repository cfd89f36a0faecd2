from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import psutil
import pytest

from orchestrator.cluster.scratch import scratch_folder
from orchestrator.guard import leftovers
from orchestrator.guard.leftovers import OWNER, machine_names, remove_leftovers
from tests.support.command import ROOT, sweep, wait_for
from tests.support.scratch import short_base

__all__ = ["short_base"]
# Any count matches, because another test's folder may be removed, too.
REMOVED = re.compile(r"Removed \d+ temporary folders? .*\n")
OWNS = """
from pathlib import Path
import time
from orchestrator.cluster.scratch import scratch_folder
with scratch_folder() as folder:
    (folder / "ray").mkdir()
    (folder / "ray" / "log").touch()
    print(folder, flush=True)
    time.sleep(600)
"""


MAKES_AND_REMOVES = """
from orchestrator.cluster.scratch import scratch_folder
print(flush=True)
while True:
    with scratch_folder() as folder:
        for number in range(100):
            (folder / str(number)).mkdir()
"""


@pytest.fixture
def base(short_base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:  # noqa: ARG001
    """Redirect temporary files of this process and its children to `short_base`.

    Otherwise, a test would remove the leftovers of other tests in /tmp.
    """
    monkeypatch.setattr(leftovers, "SHORT_BASE", str(short_base))
    monkeypatch.setattr(tempfile, "tempdir", str(short_base))
    monkeypatch.setenv("TMPDIR", str(short_base))
    return short_base


@pytest.fixture
def python() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    with ExitStack() as stack:

        def start(
            program: str, title: str = sys.executable, **environment: str
        ) -> subprocess.Popen[str]:
            process = subprocess.Popen(
                [title, "-c", program],
                executable=sys.executable,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
                stdout=subprocess.PIPE,
                text=True,
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        yield start


Start = Callable[..., subprocess.Popen[str]]


def folder_of(owner: subprocess.Popen[str]) -> Path:
    assert owner.stdout is not None
    return Path(owner.stdout.readline().strip())


def dead_folder(base: Path, name: str = "sweep-abcdefgh", names: object = None) -> Path:
    folder = base / name
    folder.mkdir(parents=True)
    (folder / OWNER).write_text("\n".join(machine_names() if names is None else [str(names)]))
    return folder


def has_open(pid: int, path: Path) -> bool:
    return str(path) in {file.path for file in psutil.Process(pid).open_files()}


def ended(process: subprocess.Popen[str]) -> int:
    return process.wait(timeout=10)


def test_killed_runs_folder_is_removed(base: Path, python: Start) -> None:
    killed, lives = python(OWNS), python(OWNS)
    killed_folder, living_folder = folder_of(killed), folder_of(lives)
    asleep = "import time; time.sleep(600)"
    with_its_temporary_files_there = python(asleep, TMPDIR=str(killed_folder))
    agent = python(f"file = open('{killed_folder}/ray/log', 'a'); {asleep}", title="ray::Agent")
    joined = python(f"file = open('{killed_folder}/ray/log', 'a'); {asleep}")
    reads = python(f"file = open('{killed_folder}/ray/log'); {asleep}", title="ray-log-viewer")
    of_the_other = python(asleep, TMPDIR=str(living_folder))
    for process in (agent, joined, reads):
        wait_for(
            partial(has_open, process.pid, killed_folder / "ray" / "log"),
            timeout_s=10,
            event="opened",
        )
    assert remove_leftovers() == 0
    killed.kill()
    killed.wait()
    assert remove_leftovers() == 1
    assert [*base.iterdir()] == [living_folder]
    assert None not in (ended(with_its_temporary_files_there), ended(agent))
    assert [process.poll() for process in (joined, reads, lives, of_the_other)] == [None] * 4
    assert remove_leftovers() == 0


@pytest.mark.chaos(3, 100)
def test_killed_runs_leftovers_are_removed(base: Path, python: Start, rounds: int) -> None:
    for _ in range(rounds):
        killed = python(MAKES_AND_REMOVES)
        folder_of(killed)
        time.sleep(random.uniform(0.0, 0.1))
        killed.kill()
        killed.wait()
        remove_leftovers()
        # A run killed within its first microseconds leaves a folder with no known owner.
        assert {path.name for path in base.glob("*/*")} <= {f"{OWNER}.unfinished"}


def test_processes_in_folder_are_ended(base: Path, python: Start) -> None:
    with scratch_folder() as folder:
        daemon = python("import time; time.sleep(600)", TMPDIR=str(folder))
        # The kernel sets up a new process's environment with a short delay.
        wait_for(
            lambda: str(folder) in Path(f"/proc/{daemon.pid}/environ").read_text(),
            timeout_s=20,
            event="begun",
        )
        assert remove_leftovers() == 0
    assert ended(daemon) is not None
    assert [*base.iterdir()] == []


def test_foreign_files_stay(base: Path, tmp_path: Path) -> None:
    target = dead_folder(tmp_path, "target")
    (target / "data").write_text("mine")
    (base / "sweep-abcdefg0").symlink_to(target)
    (base / "sweep-abcdefg1").write_text("a file")
    dead_folder(base, "sweep-abcdefg2", names="another-machine")
    dead_folder(base, "sweep-results")
    (base / "sweep-my_stuff").mkdir()
    linked = base / "sweep-abcdefg3"
    linked.mkdir()
    (linked / OWNER).symlink_to(target / OWNER)
    before = sorted(base.rglob("*"))
    assert remove_leftovers() == 0
    assert sorted(base.rglob("*")) == before
    assert (target / "data").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change a folder's owner")
@pytest.mark.parametrize("entry", ["", OWNER])
def test_other_users_folder_stays(base: Path, entry: str) -> None:
    folder = dead_folder(base)
    os.chown(folder / entry, 65534, 65534)
    assert remove_leftovers() == 0
    assert (folder / OWNER).exists()


def test_clean_prints_removed_folders(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead_folder(base)
    storage, copies = tmp_path / "results", tmp_path / "softmax-bottleneck-sweeps"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for unfinished in (
        storage / ".writable-0123456789abcdef",
        copies / f".train.txt.{2**22 + 1}-01234567.tmp",
    ):
        unfinished.parent.mkdir()
        unfinished.write_bytes(b"x")
        os.utime(unfinished, (0, 0))
    first, second = (sweep("clean", "--storage", storage).stdout for _ in range(2))
    assert REMOVED.sub("", first) == (
        f"Removed 1 unfinished file below {storage}.\nRemoved 1 unfinished file below {copies}.\n"
    )
    assert REMOVED.match(first)
    assert REMOVED.sub("", second) in ("There was nothing to remove.\n", "")
    assert [*base.iterdir()] == []


@pytest.mark.parametrize(
    ("storage", "message"),
    [("s3://bucket", "is an object store"), ("/nonexistent", "no such folder")],
)
def test_clean_takes_a_folder(storage: str, message: str) -> None:
    answer = sweep("clean", "--storage", storage)
    assert (answer.returncode, message in answer.stderr) == (2, True)
