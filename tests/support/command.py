"""Running the real command in a process of its own."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TIMES = ("seconds", "seconds_per_epoch", "tokens_per_second", "wall_seconds", "peak_memory_mib", "attempt")
"""Columns of the results that a repetition changes."""


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}


def start(*arguments: str | Path, cwd: Path = ROOT) -> subprocess.Popen[str]:
    """The command in a process group of its own, as a shell would start it."""
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


def sweep(*arguments: str | Path, cwd: Path = ROOT, timeout_s: float = 240) -> subprocess.CompletedProcess[str]:
    """The command, run to its end."""
    process = start(*arguments, cwd=cwd)
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def results_table(storage: Path, study: str = "gss_grid") -> list[dict[str, str]]:
    """The results without what a repetition changes."""
    answer = sweep("results", study, "--storage", storage, "--format", "csv")
    assert answer.returncode == 0, answer.stderr
    rows = list(csv.DictReader(io.StringIO(answer.stdout)))
    return [{key: value for key, value in row.items() if key not in TIMES} for row in rows]
