"""Tests with real processes and signals. `guarded` runs each test's program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from orchestrator.guard.processes import state
from tests.support.command import ROOT, wait_for
from tests.support.guarded_programs import HEAD, Start, end, start

__all__ = ["start"]

BUSY = """
    ready()
    while True:
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            pass
"""
WAITS = """
    ready()
    time.sleep(60)
"""
PATIENT_S = 2.5
PATIENT = f"guard.STALL_S = {PATIENT_S}"
"""This line of code raises a program's stall limit to `PATIENT_S` seconds, for slow hosts."""


def is_alive(pid: int) -> bool:
    return (state(pid) or psutil.STATUS_ZOMBIE) != psutil.STATUS_ZOMBIE


def is_stopped(pid: int) -> bool:
    return state(pid) == psutil.STATUS_STOPPED


@pytest.mark.parametrize(
    ("body", "status"), [("    return 0", 0), ("    return 2", 2), ("    sys.exit(5)", 1)]
)
def test_guard_returns_commands_status(start: Start, body: str, status: int) -> None:
    assert end(start(body, wait=False))[0] == status


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=lambda value: value,
)
@pytest.mark.parametrize("receiver", ["guard", "group", "command"])
def test_signal_interrupts_the_command(
    start: Start, tmp_path: Path, number: signal.Signals, status: int, receiver: str
) -> None:
    process = start(WAITS)
    if receiver == "group":
        os.killpg(process.pid, number)
    else:
        os.kill(process.pid if receiver == "guard" else int((tmp_path / "pid").read_text()), number)
    ended, stderr = end(process, timeout_s=10)
    assert (ended, stderr) == (status, "Interrupted. Run the same command again to resume.\n")


@pytest.mark.parametrize(
    ("pause_s", "slow_s"), [(0, 0), (0.0001, 0), (0.0005, 0), (0.02, 0), (0.02, 0.1), (0, 0.1)]
)
def test_signals_count_during_finalizers(start: Start, pause_s: float, slow_s: float) -> None:
    process = start(f"""
    start_thread = threading.Thread.start
    threading.Thread.start = lambda self: (start_thread(self), time.sleep({slow_s}))
    class Slow:
        def __del__(self):
            ready()
            if {pause_s} and os.fork() == 0:
                for _ in range(2):
                    os.kill(os.getppid(), signal.SIGTERM)
                    time.sleep({pause_s})
                os._exit(0)
            time.sleep(60)
    Slow()
    time.sleep(60)
""")
    if pause_s == 0:
        process.terminate()
    assert end(process) == (143, "Interrupted. Run the same command again to resume.\n")


def test_error_replacing_interrupt_is_named(start: Start) -> None:
    process = start("""
    try:
        ready()
        time.sleep(60)
    except KeyboardInterrupt:
        raise SyntaxError("compiler")
""")
    process.terminate()
    status, stderr = end(process)
    assert (status, stderr.count("\n")) == (143, 1) and "compiler" in stderr


def test_hanging_command_is_ended(start: Start, tmp_path: Path) -> None:
    process = start(BUSY)
    process.terminate()
    assert process.stderr is not None
    start_s = time.monotonic()
    assert process.stderr.readline().startswith("Stopping, which may take 10 s")
    assert time.monotonic() - start_s < 5, "the guard must not wait for the command"
    status, stderr = end(process, timeout_s=10)
    assert status == 143
    assert stderr.startswith("The command did not stop within 1.5 s and was killed.")
    assert not is_alive(int((tmp_path / "pid").read_text()))


def test_reported_stop_is_trusted(start: Start) -> None:
    process = start(
        """
    try:
        ready()
        time.sleep(60)
    except KeyboardInterrupt:
        report_stopping()
        time.sleep(1.2)
    return 130
"""
    )
    process.terminate()
    assert end(process) == (143, "")


def test_second_signal_ends_command_immediately(start: Start) -> None:
    process = start("    guard.STOP_S = 60" + BUSY)
    process.terminate()
    time.sleep(0.1)
    process.terminate()  # `timeout` sends a second signal like this
    time.sleep(1.2)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    status, stderr = end(process, timeout_s=10)
    assert status == 143
    assert "Ended at once." in stderr


def test_nohup_is_respected(start: Start) -> None:
    process = start(WAITS, before="import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n")
    process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    assert process.poll() is None
    process.terminate()
    assert end(process)[0] == 143


def test_remaining_processes_are_ended(start: Start, tmp_path: Path) -> None:
    daemon = "import os, time; open('daemon', 'w').write(str(os.getpid())); time.sleep(60)"
    body = f"""
    subprocess.Popen([sys.executable, "-c", {daemon!r}], start_new_session=True)
    while not Path("daemon").exists() or not Path("daemon").read_text():
        time.sleep(0.05)
    return 0
"""
    assert end(start(body, wait=False)) == (0, "")
    assert not is_alive(int((tmp_path / "daemon").read_text()))


def test_killed_guard_ends_command(start: Start, tmp_path: Path) -> None:
    process = start(WAITS)
    process.kill()
    process.communicate()
    pid = int((tmp_path / "pid").read_text())
    wait_for(lambda: not is_alive(pid), timeout_s=10, event="the command's end")


def test_command_restarts_on_request(start: Start, tmp_path: Path) -> None:
    body = """
    if starts() < 3:
        trial_ended()
    start_again("Ray's process gcs_server died")
"""
    status, stderr = end(start(body, wait=False))
    assert status == 5
    *again, given_up = stderr.splitlines()
    assert set(again) == {"Ray's process gcs_server died. Restarting the sweep."}
    assert given_up.startswith("error: Ray's process gcs_server died. This happened 3 times")
    assert (tmp_path / "starts").read_text() == "x" * 5


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        ("time.sleep(60)", "The sweep stalled for 1 s"),
        ("ctypes.PyDLL(None).sleep(60)", "The sweep stalled for 1 s"),
        ("ctypes.string_at(0)", "The sweep's process crashed (SIGSEGV)"),
        ("os.abort()", "The sweep's process crashed (SIGABRT)"),
        ("with patient(60): time.sleep(2); os.abort()", "The sweep's process crashed (SIGABRT)"),
        ("with patient(0.5): time.sleep(60)", "The sweep stalled for 0.5 s"),
        # Ray exits this way if its raylet dies; a command may use the same status.
        ("os._exit(1)", "The sweep's process ended unexpectedly, with status 1"),
    ],
)
def test_stalled_sweep_is_restarted(start: Start, trouble: str, message: str) -> None:
    body = f"""
    if starts() == 2:
        return 0
    beat()
    {trouble}
"""
    assert end(start(body, wait=False)) == (
        0,
        f"{message}. Restarting the sweep.\n",
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_late_signal_is_handled(start: Start, number: signal.Signals) -> None:
    """Slurm's `scancel` signals one process after another, so one may get its signal late."""
    process = start(
        "    with watched(), patient(60):\n        ready()\n        time.sleep(1)\n        "
        "os._exit(1)"
    )
    time.sleep(1.2)
    process.send_signal(number)
    status, stderr = end(process)
    assert status == 128 + number and stderr.startswith("Interrupted.")


def test_late_crash_is_final(start: Start) -> None:
    status, stderr = end(
        start("    with watched(), patient(60):\n        pass\n    os.abort()", wait=False)
    )
    assert status == 134 and stderr.startswith("error: the command's process was killed by SIGABRT")


def test_command_without_beats_is_awaited(start: Start) -> None:
    body = """
    assert starts() == 1
    beat()
    stop_beating()
    beat_on()
    time.sleep(2)
    return 0
"""
    assert end(start(body, wait=False)) == (0, "")


@pytest.mark.parametrize(
    "held_up", ["os.kill(os.getpid(), signal.SIGSTOP)", "print('x' * 1_000_000, flush=True)"]
)
def test_blocked_sweep_is_awaited(start: Start, tmp_path: Path, held_up: str) -> None:
    """A debugger can block a sweep, and so can a reader that stops reading the sweep's output."""
    body = f"""
    assert starts() == 1
    ready()
    beat()
    {held_up}
    return 0
"""
    process = start(body + PATIENT)
    time.sleep(PATIENT_S + 1)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGCONT)
    assert end(process) == (0, "")


def test_killed_command_is_not_restarted(start: Start) -> None:
    status, stderr = end(start("    beat()\n    os.kill(os.getpid(), signal.SIGKILL)", wait=False))
    assert status == 137
    assert stderr.startswith("error: the command's process was killed by SIGKILL (by a user, or")


def test_ctrl_z_stops_everything(start: Start, tmp_path: Path) -> None:
    body = """
    ready()
    while not Path("go-on").exists():
        beat()
        time.sleep(0.1)
    return 0
"""
    process = start(body)
    pid = int((tmp_path / "pid").read_text())
    process.send_signal(signal.SIGTSTP)
    wait_for(lambda: is_stopped(pid), timeout_s=10, event="the stop")
    time.sleep(1.5)
    (tmp_path / "go-on").touch()
    process.send_signal(signal.SIGCONT)
    assert end(process) == (0, "")


@pytest.mark.parametrize("after_s", [0.03, 0.05, 0.07, 0.1])
def test_signal_during_import_is_quiet(after_s: float) -> None:
    process = subprocess.Popen(
        [sys.executable, ROOT / "sweep.py", "studies"], stderr=subprocess.PIPE, text=True
    )
    time.sleep(after_s)
    process.terminate()
    status, stderr = end(process)
    assert status in (143, -signal.SIGTERM), "Python may not have a signal handler yet"
    assert stderr.count("\n") <= 1
    assert "Traceback" not in stderr


def test_shell_processes_survive(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        f"{HEAD}    time.sleep(0.3)\n    return 0\nsys.exit(guarded(run))"
    )
    # The shell keeps starting processes, and ends when one of them is killed.
    shell = f"(while sleep 0.1; do :; done) & echo $! > pid; exec {sys.executable} program.py"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        ["bash", "-c", shell],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.DEVNULL,
        check=False,
        timeout=30,
    )
    assert ended.returncode == 0
    time.sleep(0.3)
    pid = int((tmp_path / "pid").read_text())
    assert is_alive(pid)
    os.kill(pid, signal.SIGKILL)
