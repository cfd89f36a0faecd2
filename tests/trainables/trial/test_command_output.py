from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from tests.support.command import wait_for
from tests.support.program import metrics, run, shell
from trainables.errors import UserError
from trainables.pulse import PULSE


@pytest.mark.parametrize(
    "program",
    [
        "for _ in range(100): sys.stdout.write(('x' * 99 + '\\n') * 10_000)",
        "for _ in range(100): sys.stdout.write('x' * 1_000_000)\nprint()",
        "for _ in range(100): sys.stderr.write('x' * 999_999 + '\\r')",
        "for _ in range(100): sys.stdout.buffer.write(os.urandom(1_000_000))\nprint()",
    ],
)
def test_huge_output_is_bounded(tmp_path: Path, program: str) -> None:
    before = psutil.Process().memory_info().rss
    peak = [before]
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            peak[0] = max(peak[0], psutil.Process().memory_info().rss)

    thread = threading.Thread(target=watch)
    thread.start()
    outcome = run(tmp_path, f"import os, sys\n{program}\nprint('{{\"loss\": 1}}')\n")
    done.set()
    thread.join()
    assert metrics(outcome) == {"loss": 1}
    output = tmp_path / "files" / "output.txt"
    assert output.stat().st_size < 2**23 and '{"loss": 1}' in output.read_text()
    assert peak[0] - before < 2**26


def run_elsewhere(folder: Path, program: str) -> subprocess.Popen[bytes]:
    """Start a worker with `program` in a process of its own."""
    code = f"""
import sys
from pathlib import Path
from trainables.config import Command, Goal
from trainables.runtime import Runtime
from trainables.trial import run_trial
program = {program!r}.replace("{{", "{{{{").replace("}}", "}}}}")
run_trial(Command([sys.executable, "-c", program]), directory=Path({str(folder)!r}),
          runtime=Runtime(goal=Goal("loss", "min", "")))"""
    return subprocess.Popen([sys.executable, "-c", code])


PRINTS_WHILE_STOPPED = """
import json, os, sys, time
if os.path.exists("state"):
    print(json.dumps({"epoch": 5, "loss": 5}))
    sys.exit(%d)
print(json.dumps({"epoch": 0, "loss": 0}))
while not os.path.exists("stopped"):
    time.sleep(0.01)
for epoch in range(1, 5):
    print(json.dumps({"epoch": epoch, "loss": epoch}))
print(json.dumps({"loss": 7}))
print('{"epoch": 5, "lo', end="")
open("state", "w").close()
time.sleep(600)
"""


@pytest.mark.parametrize("status", [0, 3])
def test_unreported_lines_survive_a_kill(tmp_path: Path, status: int) -> None:
    program = PRINTS_WHILE_STOPPED % status
    epochs = tmp_path / "checkpoint-epochs.jsonl"
    with run_elsewhere(tmp_path, program) as worker:
        wait_for(epochs.exists, timeout_s=60, event="first epoch")
        worker.send_signal(signal.SIGSTOP)
        (tmp_path / "files" / "stopped").touch()
        wait_for((tmp_path / "files" / "state").exists, timeout_s=10, event="state")
        worker.kill()
    assert len(epochs.read_text().splitlines()) == 1
    if status:
        with pytest.raises(UserError, match="status 3"):
            run(tmp_path, program)
        assert len(epochs.read_text().splitlines()) == 6
    else:
        outcome = run(tmp_path, program)
        assert [epoch.numbers["loss"] for epoch in outcome.epochs] == [0, 1, 2, 3, 4, 5]
        assert metrics(outcome) == {"loss": 7}
    assert not list(tmp_path.glob(".*.tmp"))


def test_pruned_program_keeps_later_epochs(tmp_path: Path) -> None:
    program = """
import os, time
first = 3 if os.path.exists("state") else 0
for epoch in range(first, first + 3):
    print('{"epoch": %d, "loss": %d}' % (epoch, 9 - epoch), flush=True)
open("state", "w").close()
time.sleep(0 if first else 600)"""
    assert run(tmp_path, program, stop_above={1: 1.0}).state == "pruned"
    outcome = run(tmp_path, program)
    assert [epoch.epoch for epoch in outcome.epochs] == [0, 1, 2, 3, 4, 5]


def test_endless_output_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainables.trial.command_run.PRINTED_BYTES", 2**24)
    for stream in (1, 2):
        with pytest.raises(UserError, match="1 GiB"):
            shell(tmp_path / str(stream), f"yes >&{stream}")
        files = [path for path in (tmp_path / str(stream)).rglob("*") if path.is_file()]
        assert sum(path.stat().st_size for path in files) < 2**21


@pytest.mark.parametrize("has_pidfd", [True, False])
def test_line_is_reported_soon(
    tmp_path: Path, has_pidfd: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_pidfd:
        monkeypatch.delattr(os, "pidfd_open")
    program = """import json, time
for epoch in range(4):
    time.sleep(0.15)
    print(json.dumps({"epoch": epoch, "loss": time.time()}))"""
    delays = list[float]()
    start_s = time.thread_time()
    run(
        tmp_path, program, on_epoch=lambda epoch: delays.append(time.time() - epoch.numbers["loss"])
    )
    assert len(delays) == 4 and min(delays) < 0.2
    assert time.thread_time() - start_s < 0.5


def test_any_output_is_progress(tmp_path: Path) -> None:
    counts, done = [PULSE.count], threading.Event()

    def watch() -> None:
        while not done.wait(0.01):
            counts.append(PULSE.count)

    thread = threading.Thread(target=watch)
    thread.start()
    shell(tmp_path, "for i in 1 2 3 4; do printf .; sleep 0.2; done; echo; echo '{\"loss\": 1}'")
    done.set()
    thread.join()
    assert len(set(counts)) >= 6
