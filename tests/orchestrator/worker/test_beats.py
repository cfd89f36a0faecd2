from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from orchestrator.worker.beats import Beat, beating
from tests.support.command import wait_for
from tests.support.processes import Process, Report
from trainables.pulse import PULSE


def beat_in(sent: list[bytes], position: str) -> Beat:
    def there() -> list[Beat]:
        return [beat for beat in map(Beat.model_validate_json, sent) if beat.position == position]

    return wait_for(there, timeout_s=30, event=f"a beat {position}")[0]


def test_beat_reports_line_of_user_file() -> None:
    sent: list[bytes] = []
    with beating(sent.append, "here", ["test_beats"]):
        PULSE.begin("one")
        PULSE.begin_step(2, 114)
        beat = beat_in(sent, "in epoch 2, step 114")
    assert (beat.trial_id, beat.machine, beat.pid, beat.progress) == ("one", "here", os.getpid(), 2)
    assert beat.line.startswith("test_beats.py, line ")
    assert 10**7 < beat.memory_bytes < beat.machine_memory.total_bytes
    count = len(sent)
    time.sleep(0.1)
    assert len(sent) == count, "a beat was sent after the end"


def fork_within_a_trial(report: Report) -> None:
    with beating(lambda _: None, "here", []):
        child = os.fork()
        if child == 0:
            time.sleep(1000)
        report(child)
        time.sleep(1000)


@pytest.mark.skipif(not Path("/proc").exists(), reason="of Linux")
def test_forked_processes_end_with_trial(tmp_path: Path) -> None:
    process = Process(tmp_path, fork_within_a_trial)
    child = process.receive()
    assert Path(f"/proc/{child}").exists()
    process.kill()
    wait_for(lambda: not _lives(child), timeout_s=10, event="the end of the forked process")


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
