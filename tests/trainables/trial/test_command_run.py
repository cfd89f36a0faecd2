from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.command import wait_for
from tests.support.program import metrics, run, shell
from trainables.config import Command
from trainables.errors import UserError
from trainables.runtime import Runtime
from trainables.trial import run_trial
from trainables.trial_folder import Epoch

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
