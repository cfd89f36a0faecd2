from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.browser import Browser
from tests.support.command import start, sweep
from tests.support.smoke_trials import smoke_plan, train_here


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a storage folder in which study `gss_grid` has four done trials.

    Many tests read this folder, so no test may change it.
    """
    folder = tmp_path_factory.getbasetemp()
    # Test workers share the storage: the first one that needs it creates it.
    storage = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "finished"
    words = ("gss_grid", "--scale", "smoke", "--max-concurrent", "1", "--storage", storage)
    with storage.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (storage / "reports" / "index.html").exists():
            train_here(storage, smoke_plan("gss_grid"))
            answer = sweep(*words)
            assert answer.returncode == 0, answer.stdout + answer.stderr
    return storage


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    return shutil.copytree(finished, tmp_path / "copied")


@contextmanager
def viewed(storage: Path, *options: str) -> Iterator[str]:
    process = start("view", "--storage", storage, *options)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        link = re.search(r"http://127\.0\.0\.1:\d+/(\S*/)?\?token=\S+", line)
        assert link is not None, line
        yield link.group()
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=60)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def grid(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shutil.copytree(finished, tmp_path_factory.mktemp("grid") / "results")


@pytest.fixture(scope="module")
def link(grid: Path) -> Iterator[str]:
    with viewed(grid) as printed:
        yield printed


def text(browser: Browser, selector: str) -> str:
    return str(browser.evaluate(f"document.querySelector({selector!r})?.textContent ?? ''"))


def own_address(link: str) -> str:
    parts = urlsplit(link)
    return f"{parts.scheme}://{parts.netloc}"
