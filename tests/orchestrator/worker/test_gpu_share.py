"""Packs that share a GPU: MPS, whose program is a script here, and cores."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.cluster.run_options import RunOptions
from orchestrator.storage.storage import FolderStorage
from orchestrator.worker import gpu_share
from orchestrator.worker.gpu_share import CONTROL, share_gpu, start_mps
from orchestrator.worker.messages import EVENTS, Pack
from orchestrator.worker.pack_run import Job, TrialFunctions, run_pack
from tests.support.scripted_trials import SOUND, planned, run_scripted

ROOT = Path(__file__).parents[3]
DAEMON = """#!/bin/sh
# As NVIDIA's: -d starts the daemon, once; without it, a question fails unless the daemon runs.
[ "$1" = -d ] || { [ -d "$STATE/runs" ]; exit; }
echo "${CUDA_VISIBLE_DEVICES-none hidden} $CUDA_MPS_LOG_DIRECTORY" >>"$STATE/starts"
[ -e "$STATE/broken" ] || mkdir "$STATE/runs" 2>/dev/null
"""
PINS = """
import os, sys
from orchestrator.worker.gpu_share import pin_thread
before = os.sched_getaffinity(0)
cores = pin_thread(int(sys.argv[1]))
assert pin_thread(int(sys.argv[1])) == cores
assert os.sched_getaffinity(0) == (cores or before)
print(*sorted(cores), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def mps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state of a daemon that can be started, and is not."""
    program = tmp_path / "bin" / CONTROL
    program.parent.mkdir()
    program.write_text(DAEMON)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("STATE", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    monkeypatch.delenv("CUDA_MPS_LOG_DIRECTORY", raising=False)
    monkeypatch.setattr(gpu_share, "START_S", 0.3)
    return tmp_path


@pytest.fixture
def no_pins(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process keeps its cores."""
    monkeypatch.setattr(gpu_share, "pin_thread", lambda _: frozenset())


def test_the_daemon_is_started_once_sees_every_gpu_and_writes_where_it_may(mps: Path) -> None:
    assert start_mps() is None
    assert start_mps() is None
    assert (mps / "starts").read_text() == "none hidden /tmp/nvidia-mps\n"


@pytest.mark.usefixtures("mps")
def test_of_workers_that_start_it_at_the_same_time_all_have_it() -> None:
    program = "import sys; from orchestrator.worker.gpu_share import start_mps; sys.exit(start_mps())"
    workers = [subprocess.Popen([sys.executable, "-c", program], cwd=ROOT) for _ in range(3)]
    assert [worker.wait(60) for worker in workers] == [0, 0, 0]


@pytest.mark.usefixtures("no_pins")
def test_what_cannot_be_started_is_said(mps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (mps / "broken").touch()
    assert "since `nvidia-cuda-mps-control -d` did not start it" in str(share_gpu(0.5, 1))
    monkeypatch.setenv("PATH", "/nowhere")
    assert "since nvidia-cuda-mps-control is not installed here" in str(share_gpu(0.5, 1))


@pytest.mark.parametrize("gpus", [0.0, 1.0])
def test_a_trial_that_shares_no_gpu_starts_nothing_and_pins_nothing(mps: Path, gpus: float) -> None:
    cores = os.sched_getaffinity(0)
    assert share_gpu(gpus, 1) is None
    assert not (mps / "starts").exists()
    assert os.sched_getaffinity(0) == cores


@pytest.mark.usefixtures("no_pins")
def test_a_pack_starts_it_and_tells_the_driver_where_it_could_not(mps: Path) -> None:
    def notes() -> list[str]:
        sent = list[str]()
        options = RunOptions(storage=FolderStorage(mps / "results"), gpus_per_trial=0.5)
        run_pack(Pack(tuple(planned([SOUND]))), Job(options=options, measurements=(), functions=functions), sent.append)
        return [event.note for text in sent for event in EVENTS.validate_json(text) if event.note is not None]

    functions = TrialFunctions(run_trial=run_scripted)
    (mps / "results").mkdir()
    (mps / "broken").touch()
    (note,) = notes()
    assert note.startswith("shares its GPU with others by turns")
    (mps / "broken").unlink()
    assert notes() == []


@pytest.fixture
def pinned() -> Callable[[int], tuple[subprocess.Popen[str], list[int]]]:
    """Starts a process that asks for so many cores and keeps them until its input ends."""

    def start(count: int) -> tuple[subprocess.Popen[str], list[int]]:
        process = subprocess.Popen(
            [sys.executable, "-c", PINS, str(count)], cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        return process, [int(core) for core in process.stdout.readline().split()]

    return start


def test_no_core_is_given_twice_and_that_of_a_killed_process_is_free_again(
    pinned: Callable[[int], tuple[subprocess.Popen[str], list[int]]],
) -> None:
    total = len(os.sched_getaffinity(0))
    started = [pinned(1) for _ in range(total + 1)]
    cores = [core for _, [*held] in started for core in held]
    assert sorted(cores) == sorted(os.sched_getaffinity(0)), "all, and none for the last"
    first, held = started[0]
    first.kill()
    first.wait()
    again = pinned(1)
    assert again[1] == held
    for process, _ in [*started, again]:
        process.kill()
        process.communicate()
    whole, held = pinned(total)
    assert len(held) == total
    whole.communicate()
    alone, held = pinned(total + 1)
    assert held == []
    alone.communicate()
