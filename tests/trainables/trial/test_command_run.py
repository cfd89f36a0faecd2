from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.command import wait_for
from trainables.config import Command, Goal
from trainables.errors import UserError
from trainables.pulse import PULSE
from trainables.runtime import Runtime
from trainables.trial import run_trial
from trainables.trial_folder import Epoch, TrialOutcome

DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:  # an orphan in a session of its own, with the program's pipes
        print(os.getpid(), file=open("pid", "w"), flush=True)
        time.sleep(600)
    os._exit(0)
while not os.path.exists("pid") or not open("pid").read().strip():
    time.sleep(0.01)
"""
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
SLEEP = "import time; time.sleep(600)\n"


def run(
    folder: Path, program: str, *, language: str = sys.executable, **options: Any
) -> TrialOutcome:
    config = Command([language, "-c", program.replace("{", "{{").replace("}", "}}")])
    runtime = Runtime(goal=Goal("loss", "min", ""))
    return run_trial(config, directory=folder, runtime=runtime, **options)


def metrics(outcome: TrialOutcome) -> Any:
    return outcome.measurements["user@1"]


def shell(folder: Path, program: str) -> TrialOutcome:
    return run(folder, program, language="sh")


def ended(folder: Path) -> bool:
    return gone(int((folder / "files" / "pid").read_text()))


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_final_metrics_and_curve(tmp_path: Path) -> None:
    outcome = shell(
        tmp_path,
        """echo starts; echo '{"epoch": 0, "loss": 2.5}'; echo '{"epoch": 1, "loss": 2}'
        echo '{"ignored": 1}' >&2; printf '{"loss": 1.5, "kept": "a"}\\r\\n{"laps": 7}'""",
    )
    assert [(epoch.epoch, epoch.numbers["loss"]) for epoch in outcome.epochs] == [(0, 2.5), (1, 2)]
    assert metrics(outcome) == {"loss": 1.5, "kept": "a", "laps": 7}
    assert "starts" in (tmp_path / "files" / "output.txt").read_text()


def test_environment_of_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "s3cret-value")
    outcome = run(
        tmp_path,
        """import json, os
names = ("TRIAL_DIR", "SEED", "DEVICE", "DATA_DIR")
print(json.dumps({"loss": 1, **{name: os.environ["SWEEP_" + name] for name in names}}))
print(json.dumps({"token": len(os.environ["MY_TOKEN"]), "same": os.getcwd()}))""",
    )
    folder = str((tmp_path / "files").resolve())
    assert metrics(outcome) == {
        "loss": 1,
        "TRIAL_DIR": folder,
        "SEED": "1",
        "DEVICE": "cpu",
        "DATA_DIR": str(Path("data").resolve()),
        "token": 12,
        "same": folder,
    }
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files and not any(b"s3cret-value" in path.read_bytes() for path in files)


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("echo loud >&2; echo '{\"loss\": 1}'; exit 3", "exit status 3: loud"),
        ("exit 4", "exit status 4 without output"),
        ("kill -SEGV $$", "Segmentation"),
        ("kill -KILL $$", "Killed"),
        ("echo done", "no final metrics"),
        ("true", "no final metrics"),
        (
            "echo '[1]'; echo 3; echo null; echo '{1'; head -c 99999 /dev/urandom",
            "no final metrics",
        ),
        ("echo '{\"epoch\": 0}'", "no final metrics"),
        ('echo \'{"epoch": true, "loss": 1}\'', "epochs"),
        ("echo '{\"epoch\": 1.5}'", "epochs"),
        ("echo '{\"epoch\": 1}'; echo '{\"epoch\": 0}'", "epochs"),
        ('echo \'{"epoch": 1, "loss": "low"}\'', "number"),
        ("echo '{\"loss\": [1]}'", "number"),
        ("echo '{\"loss\": null}'", "number"),
        ("printf '%s\\n' '{\"loss\\ud800\": 1}'", "no final metrics"),
        ("printf '%s\\n' '{\"loss\": \"\\ud800\"}'", "no final metrics"),
    ],
)
def test_bad_program_is_one_sentence(tmp_path: Path, program: str, problem: str) -> None:
    with pytest.raises(UserError, match=problem) as error:
        shell(tmp_path, program)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("program", ["./absent", "/etc/passwd", "nul\0byte"])
def test_program_that_cannot_start(tmp_path: Path, program: str) -> None:
    with pytest.raises(UserError, match="cannot be started"):
        run_trial(Command([program]), directory=tmp_path, runtime=Runtime())


def test_nan_diverges(tmp_path: Path) -> None:
    huge = "9" * 400
    for name, line in (
        ("epoch", '{"epoch": 0, "loss": NaN}'),
        ("final", f'{{"loss": -{huge}}}'),
    ):
        outcome = shell(tmp_path / name, f"echo '{line}'")
        assert outcome.state == "diverged" and "loss" in str(outcome.cause)


def test_only_epochs_give_the_last(tmp_path: Path) -> None:
    outcome = shell(tmp_path, """for i in 3 5; do echo "{\\"epoch\\": $i, \\"loss\\": $i}"; done""")
    assert metrics(outcome) == {"loss": 5}


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


def test_daemon_ends_with_the_program(tmp_path: Path) -> None:
    start_s = time.monotonic()
    outcome = run(tmp_path, DAEMON + "print('{\"loss\": 1}')")
    assert metrics(outcome) == {"loss": 1} and time.monotonic() - start_s < 30
    assert ended(tmp_path)


def test_daemon_without_environment_ends(tmp_path: Path) -> None:
    program = "setsid env -i sh -c 'echo $$ > pid; sleep 600' & while [ ! -s pid ]; do :; done"
    with pytest.raises(UserError, match="no final metrics"):
        shell(tmp_path, program)
    assert ended(tmp_path)


def test_other_children_survive(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "600"]) as other:
        shell(tmp_path, "echo '{\"loss\": 1}'")
        assert other.poll() is None
        other.kill()


def test_pruned_program_gets_time(tmp_path: Path) -> None:
    program = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (open("saved", "w"), sys.exit(1)))
print('{"epoch": 0, "loss": 9}')
time.sleep(600)"""
    outcome = run(tmp_path, program, stop_above={1: 1.0})
    assert outcome.state == "pruned" and (tmp_path / "files" / "saved").exists()


@pytest.mark.parametrize("line", ['{"epoch": 0, "loss": 9}', '{"epoch": 0, "loss": NaN}'])
def test_stubborn_program_is_killed(
    tmp_path: Path, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainables.trial.command_run.GRACE_S", 0.5)
    program = f"{STUBBORN}{DAEMON}\nprint({line!r})\n{SLEEP}"
    outcome = run(tmp_path, program, stop_above={1: 1.0})
    assert outcome.state in ("pruned", "diverged") and ended(tmp_path)


def test_killed_worker_takes_all_along(tmp_path: Path) -> None:
    program = f"import os\nopen('main', 'w').write(str(os.getpid()))\n{STUBBORN}{DAEMON}\n{SLEEP}"
    code = f"""
import sys
from pathlib import Path
from trainables.config import Command
from trainables.runtime import Runtime
from trainables.trial import run_trial
run_trial(Command([sys.executable, "-c", {program!r}]), directory=Path({str(tmp_path)!r}),
          runtime=Runtime())"""
    with subprocess.Popen([sys.executable, "-c", code], start_new_session=True) as worker:
        pid = tmp_path / "files" / "pid"
        wait_for(lambda: pid.exists() and pid.read_text().strip(), timeout_s=60, event="daemon")
        main = int((tmp_path / "files" / "main").read_text())
        assert not gone(main)
        os.killpg(worker.pid, signal.SIGKILL)
    wait_for(lambda: ended(tmp_path), timeout_s=10, event="end of the daemon")
    wait_for(lambda: gone(main), timeout_s=10, event="end of the program")


def test_next_attempt_ends_an_earlier_one(tmp_path: Path) -> None:
    folder = (tmp_path / "files").resolve()
    folder.mkdir()
    (folder / "left").touch()
    environment = {**os.environ, "SWEEP_TRIAL_DIR": str(folder)}
    with subprocess.Popen(["sleep", "600"], env=environment) as earlier:
        shell(tmp_path, "echo '{\"loss\": 1}'")
        assert earlier.wait() == -signal.SIGKILL


def test_resumed_program_repeats_epochs(tmp_path: Path) -> None:
    program = """
import json, os, sys, time
first = int(open("state").read()) if os.path.exists("state") else 0
for epoch in range(first, 4):
    print(json.dumps({"epoch": epoch, "loss": 10 * first + epoch}))
    if epoch == 2 and not first:
        sys.exit(7)
    if epoch % 2 == 0:
        open("state", "w").write(str(epoch + 1))
"""
    seen: list[Epoch] = []
    with pytest.raises(UserError, match="status 7"):
        run(tmp_path, program, on_epoch=seen.append)
    outcome = run(tmp_path, program, on_epoch=seen.append)
    assert [epoch.epoch for epoch in seen] == [0, 1, 2, 1, 2, 3]
    assert [epoch.numbers["loss"] for epoch in outcome.epochs] == [0, 11, 12, 13]


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


def test_files_can_be_programs(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text('#!/bin/sh\necho "{\\"loss\\": $1}"\n')
    (tmp_path / "study.py").write_text(
        "from trainables.config import Command\n"
        "CONFIG = Command(['./run.sh', '{rate}'], files=['run.sh'], rate=0.5)\n"
    )
    code = "import runpy, sys; print(runpy.run_path(sys.argv[1])['CONFIG'].sha256)"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "study.py")], capture_output=True, check=True
    )
    assert len(json.loads(f'"{done.stdout.decode().strip()}"')) == 64
    namespace: dict[str, Any] = {"__file__": str(tmp_path / "study.py")}
    exec((tmp_path / "study.py").read_text(), namespace)
    outcome = run_trial(namespace["CONFIG"], directory=tmp_path / "trial", runtime=Runtime())
    assert metrics(outcome) == {"loss": 0.5}
