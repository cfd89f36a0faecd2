"""A real sweep that goes on until it is stopped, for whoever watches it from outside."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from orchestrator.cluster.address import token_path
from tests.support.command import ROOT, environment

T = TypeVar("T")
LOGS = ("mlflow", "tensorboard", "tensorboardX")
TRIAL = re.compile(r"gss c=\S+ k=\S+")
"""Names of the sweep's trials."""


@contextmanager
def running_sweep(folder: Path) -> Iterator[str]:
    """The four corners of gss_grid with more epochs than anyone waits for; yields the address of Ray's dashboard.

    Packages of `LOGS` are not there for it; a process of it that looks for one leaves `looked for NAME` in the folder.
    """
    absent = folder / "absent"
    absent.mkdir()
    for name in LOGS:
        mark = f"open({str(folder / f'looked for {name}')!r}, 'w').close()"
        (absent / f"{name}.py").write_text(f"{mark}\nraise ModuleNotFoundError(name={name!r})\n")
    path = os.pathsep.join(filter(None, (str(absent), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-u", str(ROOT / "sweep.py"), "gss_grid", "--scale", "smoke", "--storage", str(folder)]
    process = subprocess.Popen(
        [*command, "--set", "training.epochs=100000", "--max-concurrent", "2"],
        env={**environment(), "RAY_metrics_report_interval_ms": "1000", "PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        seen: list[str] = []
        for line in process.stdout:
            seen.append(line)
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
            if found:
                yield found.group()
                break
        else:
            raise AssertionError("".join(seen))
    finally:
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.communicate(timeout=60)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def token() -> str:
    """Ray's token, as `ray get-auth-token` prints it."""
    return Path(token_path()).read_text().strip()


def get_json(url: str, **query: str) -> Any:
    """What a server on this machine answers, with Ray's token shown."""
    request = urllib.request.Request(f"{url}?{urllib.parse.urlencode(query)}" if query else url)
    request.add_header("Authorization", f"Bearer {token()}")
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)


def wait_for(look: Callable[[], T], *, timeout_s: float, what: str) -> T:
    """The first answer that says something."""
    deadline_s = time.monotonic() + timeout_s
    while time.monotonic() < deadline_s:
        answer = look()
        if answer:
            return answer
        time.sleep(0.3)
    raise AssertionError(f"{what}: not within {timeout_s:.0f} s")
