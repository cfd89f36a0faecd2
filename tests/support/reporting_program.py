"""Writes the same report folder again and again, each time of other numbers. Arguments: folder, number, times.

A program of its own because the test is about processes. It starts when a line arrives on its standard input.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.support.synthetic_results import make_results, report_on

folder, number, times = sys.argv[1:]
results = [make_results(columns=50, rng_seed=int(number) + 10 * i) for i in range(int(times))]
print("ready", flush=True)
sys.stdin.readline()
for rows, spectra in results:
    report_on(rows, Path(folder), spectra=spectra)
