"""Runs the command line in this process, which saves seconds, or in a new process."""

from __future__ import annotations

import csv
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, TypeVar

from orchestrator.command.app import main

T = TypeVar("T")
ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).parent / "uv"
TIMES = (
    "seconds",
    "seconds_per_epoch",
    "tokens_per_second",
    "wall_seconds",
    "peak_memory_mib",
    "attempt",
)
"""Result columns that differ when a trial is repeated."""


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}


def start(*arguments: str | Path, cwd: Path = ROOT) -> subprocess.Popen[str]:
    """Start the command in its own process group, as a shell does."""
    return subprocess.Popen(
        [sys.executable, str(ROOT / "sweep.py"), *map(str, arguments)],
        cwd=cwd,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def sweep_process(
    *arguments: str | Path, cwd: Path = ROOT, timeout_s: float = 240
) -> subprocess.CompletedProcess[str]:
    process = start(*arguments, cwd=cwd)
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def sweep(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    words = list(map(str, arguments))
    with _as_before(), redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        status = main(words)
    return subprocess.CompletedProcess(words, status, out.getvalue(), err.getvalue())


def typed(report: Callable[[Any], None], *arguments: str | Path) -> None:
    answer = sweep(*arguments)
    report((answer.returncode, answer.stdout + answer.stderr))


@contextmanager
def _as_before() -> Iterator[None]:
    handler, paths, modules = signal.getsignal(signal.SIGTERM), list(sys.path), set(sys.modules)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)
        beside_studies = tuple(set(sys.path) - set(paths))
        sys.path[:] = paths
        for name in set(sys.modules) - modules:
            if str(getattr(sys.modules[name], "__file__", None)).startswith(beside_studies):
                del sys.modules[name]


def results_table(storage: Path, study: str = "gss_grid", *options: str) -> list[dict[str, str]]:
    answer = sweep("results", study, "--storage", storage, *options, "--format", "csv")
    assert answer.returncode == 0, answer.stderr
    rows = list(csv.DictReader(io.StringIO(answer.stdout)))
    return [{key: value for key, value in row.items() if key not in TIMES} for row in rows]


def wait_for(look: Callable[[], T], *, timeout_s: float, event: str) -> T:
    deadline_s = time.monotonic() + timeout_s
    while time.monotonic() < deadline_s:
        answer = look()
        if answer:
            return answer
        time.sleep(0.05)
    raise AssertionError(f"{event}: not within {timeout_s:.0f} s")
