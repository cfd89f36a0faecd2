"""Why a process ended, by its last beat and the machine's memory."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.schedule import endings
from orchestrator.schedule.endings import explained, kill_worker
from orchestrator.worker.beats import Beat
from orchestrator.worker.memory import MachineMemory
from orchestrator.worker.messages import Ending, EndingKind
from tests.orchestrator.schedule.beats import beat_of
from tests.support.command import wait_for

ROOM, FULL = MachineMemory(64 * 10**9, 10 * 10**9, 5), MachineMemory(64 * 10**9, 10**9, 5)
DEATH = Ending(EndingKind.PROCESS_DIED)
KILLED = ROOM._replace(kills=6)


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endings, "machine_here", lambda: "here")


def beat(memory: MachineMemory, machine: str) -> Beat:
    return beat_of(machine, machine_memory=memory)


@pytest.mark.parametrize(
    ("machine", "at_the_beat", "now", "kind"),
    [
        ("here", ROOM, ROOM, EndingKind.PROCESS_DIED),
        ("here", ROOM, KILLED, EndingKind.OUT_OF_MEMORY),
        ("here", FULL, ROOM, EndingKind.OUT_OF_MEMORY),
        ("elsewhere", ROOM, KILLED, EndingKind.PROCESS_DIED),
        ("elsewhere", FULL, ROOM, EndingKind.OUT_OF_MEMORY),
    ],
)
def test_a_death_on_a_machine_without_memory_is_told_from_others(
    machine: str,
    at_the_beat: MachineMemory,
    now: MachineMemory,
    kind: EndingKind,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What this machine's kernel has ended says nothing of another machine."""
    monkeypatch.setattr(endings, "machine_memory", lambda: now)
    ending = explained(DEATH, beat(at_the_beat, machine), "one")
    with_memory = (
        ", with 31.0 GB of the 64.0 GB of its machine" if kind is EndingKind.OUT_OF_MEMORY else ""
    )
    assert (ending.kind, ending.cause) == (kind, f"{kind.value} in epoch 3, step 9{with_memory}")


def test_the_place_of_the_trial_before_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endings, "machine_memory", lambda: ROOM)
    assert explained(DEATH, beat(ROOM, "here"), "two").cause == DEATH.cause


def test_nothing_is_added_to_an_ending_that_is_no_death() -> None:
    ending = Ending(EndingKind.ERROR, "ValueError: a bug")
    assert explained(ending, beat(ROOM, "here"), "one") is ending
    assert explained(DEATH, None, "one") == DEATH


def test_a_worker_of_this_machine_is_killed_even_where_it_is_stopped() -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"
    worker = subprocess.Popen(["ray::held", "-c", code], executable=sys.executable)
    status = Path(f"/proc/{worker.pid}/stat")
    wait_for(lambda: status.read_text().split()[2] == "T", timeout_s=30, what="its stop")
    kill_worker(beat_of("elsewhere", pid=worker.pid))
    assert worker.poll() is None
    kill_worker(beat_of("here", pid=worker.pid))
    assert worker.wait(timeout=30) == -signal.SIGKILL


def test_a_process_that_is_no_worker_or_of_another_machine_is_not_killed() -> None:
    """Its number is that of this very process."""
    for machine in ("here", "elsewhere"):
        kill_worker(beat(ROOM, machine))
