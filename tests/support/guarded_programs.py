from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.command import ROOT, wait_for

HEAD = """
import ctypes, os, signal, subprocess, sys, threading, time
from pathlib import Path
from orchestrator.guard import (
    beat, beat_on, guard, guarded, patient, report_stopping, start_again, trial_ended, watched
)
from orchestrator.guard.inside import stop_beating
guard.STOP_S, guard.STALL_S = 1.5, 1.0
def starts():
    with open("starts", "a") as file:
        file.write("x")
    return len(Path("starts").read_text())
def ready():
    Path("pid").write_text(str(os.getpid()))
    Path("ready").touch()
def run():
"""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []

    def start_program(body: str, *, wait: bool = True, before: str = "") -> subprocess.Popen[str]:
        program = f"{before}{HEAD}{body}\nsys.exit(guarded(run))"
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        if wait:
            wait_for((tmp_path / "ready").exists, timeout_s=30, event="the program runs")
        return process

    yield start_program
    for process in started:
        process.kill()
        process.communicate()


def end(process: subprocess.Popen[str], timeout_s: float = 30) -> tuple[int, str]:
    _, stderr = process.communicate(timeout=timeout_s)
    return process.returncode, stderr
