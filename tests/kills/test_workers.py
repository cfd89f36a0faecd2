from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.kills.own_sweep import OwnSweep
from tests.kills.typed import Typed
from tests.kills.typed_sweep import Undisturbed, kill, run_undisturbed
from tests.support.command import sweep, wait_for

pytestmark = [pytest.mark.timeout(0), pytest.mark.chaos(0, 1)]
START_S, END_S, STOP_S, LEASE_S = 120.0, 300.0, 10.0, 10
OTHER_HOST = ("unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"')
SEPARATE: dict[str, Any] = {"CHAOS_NO_LOCKS": "1", "CHAOS_LEASE_S": str(LEASE_S)}


class QuickSweep(OwnSweep):
    TEXT = OwnSweep.TEXT.replace("pause_s: float = 0.2", "pause_s: float = 0.1")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Undisturbed]:
    with QuickSweep(tmp_path_factory.mktemp("undisturbed")) as own:
        yield run_undisturbed(own)


def processes(typed: Typed) -> list[int]:
    return [typed.pid, *(child.pid for child in psutil.Process(typed.pid).children(recursive=True))]


def has_lines(own: OwnSweep, count: int) -> bool:
    return "".join(own.diaries()).count("\n") >= count


def repeated(own: OwnSweep) -> int:
    """Return the attempts beyond the first one of each trial."""
    attempts = own.attempts()
    return sum(map(len, attempts)) - len(attempts)


def trains(own: OwnSweep, host: str) -> bool:
    """Return whether a trial of this host has trained an epoch."""
    for fence in own.storage.glob("trials/*/*/worker"):
        diary = fence.parent / "files" / "diary.txt"
        with suppress(FileNotFoundError):
            if f'"{host}:' in fence.read_text() and diary.read_text().count("\n") > 1:
                return True
    return False


def test_sigterm_gives_the_trial_back(tmp_path: Path) -> None:
    """To the command, or to all processes, as Slurm's scancel."""
    with QuickSweep(tmp_path) as own:
        for to_all in (False, True):
            line_count = "".join(own.diaries()).count("\n") + 3  # a start and two epochs
            typed = own.type(command="work")
            wait_for(partial(has_lines, own, line_count), timeout_s=START_S, event="two epochs")
            for pid in processes(typed) if to_all else [typed.pid]:
                os.kill(pid, signal.SIGTERM)
            assert typed.status(STOP_S) == 143, typed.text
            assert "Traceback" not in typed.text
            assert list(own.storage.glob("trials/*/*/worker")) == []
            assert own.left_behind() == []
        status = sweep("status", "--storage", own.storage)
        assert "process" not in status.stdout, status
        (trial,) = own.attempts()
        assert [first > 0 for first, *_ in trial] == [False, True]


def test_workers_and_driver_share_a_study(undisturbed: Undisturbed, tmp_path: Path) -> None:
    with QuickSweep(tmp_path) as own:
        commands = [own.type(command=command) for command in ("work", "run", "work")]
        for typed in commands:
            assert typed.troubles(END_S) == []
        assert own.troubles(undisturbed.table, undisturbed.limit_s) == []
        assert repeated(own) == 0


def test_hosts_without_shared_locks_train_once(undisturbed: Undisturbed, tmp_path: Path) -> None:
    """One of three workers is killed; another one takes its trial when the fence is old."""
    probe = subprocess.run([*OTHER_HOST, "one", "true"], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip("needs root, to give a process its own host name")
    with QuickSweep(tmp_path) as own:
        commands = []
        for host in ("one", "two", "three"):
            own.prefix = (*OTHER_HOST, host)
            commands.append(own.type(command="work", **SEPARATE))
        own.prefix = ()
        wait_for(lambda: trains(own, "one"), timeout_s=START_S, event="an epoch of the first host")
        kill(processes(commands[0]))
        for typed in commands[1:]:
            assert typed.troubles(END_S) == []
        assert own.troubles(undisturbed.table, undisturbed.limit_s) == []
        assert repeated(own) == 1
