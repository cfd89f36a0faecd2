"""Speed of `view` with a store of 10,000 trials with 50 epochs each.

    python -m benchmarks.view [STORE_URL]

Prints the seconds until a real Chromium shows each page's content, and the server's memory.
Default: a SQLite store in a temporary folder. A PostgreSQL database must be empty.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.store import KEY, fill
from orchestrator.store import PlannedTrial, open_store
from tests.support.browser import Browser

ROUNDS = 5
ROOT = Path(__file__).parents[1]


@contextmanager
def _serve(*options: str) -> Iterator[tuple[str, int]]:
    command = [sys.executable, str(ROOT / "sweep.py"), "view", *options]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        link = re.search(r"http\S+", process.stdout.readline())
        assert link is not None
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        yield link.group(), int(children[0])
    finally:
        process.terminate()
        process.wait()


def pages(url: str) -> None:
    with open_store(url) as store:
        trials = fill(store, epochs=50)
    with (
        _serve("--store", url) as (link, pid),
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
    ):
        address = link.partition("/?")[0]
        with Browser(Path(profile)) as browser:
            browser.open(link, width=1280)
            for path, condition in _pages(trials).items():
                seconds = [_seconds(browser, address + path, condition) for _ in range(ROUNDS)]
                print(
                    f"{path.partition('?')[0][:40]:<42}{seconds[0]:>7.2f} "
                    f"s{statistics.median(seconds[1:]):>9.2f} s"
                )
        status = Path(f"/proc/{pid}/status").read_text()
        print("server: " + ", ".join(re.findall(r"Vm(?:HWM|RSS):\s+\d+ kB", status)))


def _pages(trials: list[PlannedTrial]) -> dict[str, str]:
    ids = [trial.trial_id[:12] for trial in trials[:6]]
    return {
        "/": "document.querySelector('#overview table')",
        f"/study/{KEY.variant}": "document.querySelector('#scatter canvas') && "
        "document.querySelector('#chosen .scatterlayer .trace') && "
        "document.querySelector('#trials .ag-center-cols-container .ag-row')",
        f"/trial/{ids[0]}": "document.querySelector('#spectra .scatterlayer .trace')",
        "/compare?"
        + "&".join(
            f"trial={start}" for start in ids
        ): "document.querySelector('#spectra .scatterlayer .trace')",
    }


def _seconds(browser: Browser, address: str, condition: str) -> float:
    start = time.perf_counter()
    browser.open(address, width=1280)
    browser.wait_until(f"Boolean({condition})", timeout_s=60)
    return time.perf_counter() - start


def main() -> None:
    if sys.argv[1:]:
        pages(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as folder:
            pages(str(Path(folder) / "results.db"))


if __name__ == "__main__":
    main()
