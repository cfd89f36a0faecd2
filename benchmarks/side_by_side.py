"""Time variants against each other in one run: each in a process of its own, taking turns, never at
the same time.

A variant is a module-level function without arguments that prepares its inputs and returns the
function to be timed. Peak memory is what the variant's process needed at most, less what it held
before its first timed call."""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection

from trainables.measurements import PeakMemory, status_mib

Prepare = Callable[[], Callable[[], object]]


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Median seconds and peak memory in MiB of one variant."""

    median_s: float
    all_s: tuple[float, ...]
    peak_mib: float


def compare(
    variants: Mapping[str, Prepare], *, rounds: int = 5, warmup: int = 1
) -> dict[str, Timing]:
    """Run every variant `warmup + rounds` times in turns (A B A B ...) and return each one's
    timing."""
    context = multiprocessing.get_context("spawn")
    pipes: dict[str, Connection] = {}
    processes = []
    for name, prepare in variants.items():
        here, there = context.Pipe()
        process = context.Process(target=_serve, args=(prepare, there), daemon=True)
        process.start()
        there.close()
        pipes[name] = here
        processes.append(process)
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for pipe in pipes.values():
        pipe.recv()
    for turn in range(warmup + rounds):
        for name, pipe in pipes.items():
            pipe.send("run")
            elapsed = pipe.recv()
            if turn >= warmup:
                seconds[name].append(elapsed)
    peaks = {}
    for name, pipe in pipes.items():
        pipe.send("stop")
        peaks[name] = pipe.recv()
    for process in processes:
        process.join()
    return {
        name: Timing(median_s=statistics.median(runs), all_s=tuple(runs), peak_mib=peaks[name])
        for name, runs in seconds.items()
    }


def _serve(prepare: Prepare, pipe: Connection) -> None:
    run = prepare()
    peak = PeakMemory()  # from here on: the peak of importing and preparing is forgotten
    before_mib = status_mib("VmRSS") or 0.0
    pipe.send("ready")
    while pipe.recv() == "run":
        start = time.perf_counter()
        run()
        pipe.send(time.perf_counter() - start)
    pipe.send(peak.peak_mib() - before_mib)


def print_table(title: str, timings: Mapping[str, Timing], *, reference: str) -> None:
    """Print seconds, MiB and the ratios against the variant `reference` (above 1: faster, or
    smaller, than it)."""
    base = timings[reference]
    print(f"\n{title}")
    print(
        f"{'variant':<24}{'median s':>12}{'min..max s':>24}{'peak MiB':>12}{'times faster':>14}{'memory':>9}"
    )
    for name, timing in timings.items():
        spread = f"{min(timing.all_s):.4g}..{max(timing.all_s):.4g}"
        print(
            f"{name:<24}{timing.median_s:>12.4g}{spread:>24}{timing.peak_mib:>12.0f}"
            f"{base.median_s / timing.median_s:>14.2f}{timing.peak_mib / base.peak_mib:>9.2f}"
        )
