"""Seconds from the typed command to the report of a smoke sweep, and where they go.

    python -m benchmarks.start [--before DIR] [--rounds 5]

`gss_grid --scale smoke` trains four tiny models on a store that is new each time; DIR is a checkout
of the code before, whose runs stand between those of this one. Each column is the time since the
command was typed, and the last one the seconds that the machine's processors worked: nothing else
may run beside it."""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MOMENTS = {
    "plan": "to run, ",
    "first trial": "[1/4]",
    "last trial": "[4/4]",
    "report": "Report: ",
}
"""Columns, and what the line that the command prints at that moment holds."""


def run(checkout: Path) -> dict[str, float]:
    """The moments of one sweep in seconds, and its processor seconds. Raises RuntimeError where it
    fails."""
    with tempfile.TemporaryDirectory() as storage:
        words = [
            sys.executable,
            "-u",
            "sweep.py",
            "gss_grid",
            "--scale",
            "smoke",
            "--storage",
            storage,
        ]
        before = _busy_s()
        typed = time.perf_counter()
        process = subprocess.Popen(
            words, cwd=checkout, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert process.stdout is not None
        seconds: dict[str, float] = {}
        lines = []
        for line in process.stdout:
            lines.append(line)
            for name, words_of_it in MOMENTS.items():
                if words_of_it in line:
                    seconds.setdefault(name, time.perf_counter() - typed)
        if process.wait() or len(seconds) < len(MOMENTS):
            raise RuntimeError(
                f"the sweep ended with status {process.returncode}:\n{''.join(lines)}"
            )
        seconds["end"] = time.perf_counter() - typed
    return seconds | {"core s": _busy_s() - before}


def _busy_s() -> float:
    """Seconds that the machine's processors have worked: Ray's processes are nobody's children in
    the end."""
    user, nice, system = map(int, Path("/proc/stat").read_text().split()[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print the median and the range of each code's moments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--before", type=Path, metavar="DIR")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    checkouts = {"after": Path(__file__).resolve().parents[1]}
    if options.before is not None:
        checkouts = {"before": options.before.resolve()} | checkouts
    runs: dict[str, list[dict[str, float]]] = {code: [] for code in checkouts}
    for _ in range(options.rounds):
        for code, checkout in checkouts.items():
            runs[code].append(run(checkout))
    names = (*MOMENTS, "end", "core s")
    print(f"{'code':<8}" + "".join(f"{name:>22}" for name in names))
    for code, measured in runs.items():
        print(
            f"{code:<8}"
            + "".join(f"{_spread([moments[name] for moments in measured]):>22}" for name in names)
        )


def _spread(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.1f} ({min(seconds):.1f}..{max(seconds):.1f})"


if __name__ == "__main__":
    main()
