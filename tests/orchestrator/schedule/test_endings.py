from __future__ import annotations

import signal
import subprocess
import sys

import psutil
import pytest

from orchestrator.schedule import endings
from orchestrator.schedule.endings import explain, kill_worker
from orchestrator.worker import Ending, EndingKind
from orchestrator.worker.memory import MachineMemory
from tests.orchestrator.schedule.beats import beat_of
from tests.support.command import wait_for

ROOM, FULL = MachineMemory(64 * 10**9, 10 * 10**9, 5), MachineMemory(64 * 10**9, 10**9, 5)
DEATH = Ending(EndingKind.PROCESS_DIED)
KILLED = ROOM._replace(kills=6)
DIED, STARVED = EndingKind.PROCESS_DIED, EndingKind.OUT_OF_MEMORY


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endings, "machine_memory", lambda: ROOM)


@pytest.mark.parametrize(
    ("machine", "at_the_beat", "now", "kind"),
    [
        ("here", ROOM, ROOM, DIED),
        ("here", ROOM, KILLED, STARVED),
        ("here", FULL, ROOM, STARVED),
        ("elsewhere", ROOM, KILLED, DIED),
        ("elsewhere", FULL, ROOM, STARVED),
    ],
)
def test_out_of_memory_is_recognized(
    machine: str,
    at_the_beat: MachineMemory,
    now: MachineMemory,
    kind: EndingKind,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Out-of-memory kills on one machine do not explain a death on another machine."""
    monkeypatch.setattr(endings, "machine_memory", lambda: now)
    ending = explain(DEATH, beat_of(machine, machine_memory=at_the_beat), "one", "here")
    memory = ", using 31.0 of its machine's 64.0 GB" if kind is STARVED else ""
    assert (ending.kind, ending.cause) == (kind, f"{kind.value} in epoch 3, step 9{memory}")


def test_position_of_another_trial_is_left_out() -> None:
    assert explain(DEATH, beat_of("here", machine_memory=ROOM), "two", "here").cause == DEATH.cause
    assert explain(DEATH, None, "one", "here") == DEATH


def test_stopped_local_worker_is_killed() -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"
    worker = subprocess.Popen(["ray::held", "-c", code], executable=sys.executable)
    status = psutil.Process(worker.pid).status
    wait_for(lambda: status() == psutil.STATUS_STOPPED, timeout_s=30, event="its stop")
    kill_worker(beat_of("elsewhere", pid=worker.pid), "here")
    assert worker.poll() is None
    kill_worker(beat_of("here", pid=worker.pid), "here")
    assert worker.wait(timeout=30) == -signal.SIGKILL


def test_other_processes_are_not_killed() -> None:
    for machine in ("here", "elsewhere"):
        kill_worker(beat_of(machine, machine_memory=ROOM), "here")
