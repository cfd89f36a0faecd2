from __future__ import annotations

import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from orchestrator.worker import machine_memory
from tests.kills.conftest import Keep
from tests.kills.typed_sweep import OPTIONS, SEED, Round, TypedSweep, Undisturbed

pytestmark = pytest.mark.timeout(0)


@pytest.mark.chaos(0, 1)
@pytest.mark.parametrize("number", range(5))
@pytest.mark.usefixtures("rounds")
def test_four_commands_train_trials_once(
    undisturbed: Undisturbed, store_url: str, tmp_path: Path, number: int, keep: Keep
) -> None:
    """A trial may be claimed twice only if the killed command had claimed it."""
    chance = random.Random(SEED + number)
    with TypedSweep(tmp_path / "sweep", *OPTIONS, store=store_url) as sweep:
        commands = [sweep.type() for _ in range(4)]
        time.sleep(chance.uniform(0, 2 * undisturbed.seconds))
        drivers = sweep.alive("driver", commands[0])
        claimed_trials = sweep.claimed_trials(drivers)
        killed = sweep.kill("driver", commands[0], chance)
        claimed_trials |= sweep.claimed_trials(drivers)
        part = Round(f"{store_url.partition(':')[0]}, {'killed' if killed else 'was over before'}")
        for command in commands[killed:]:
            part.troubles += command.troubles(4 * undisturbed.limit_s)
        commands[0].status(undisturbed.limit_s)
        part.troubles += commands[0].tracebacks()
        claims = sweep.claims().items()
        again = {trial for trial, times in claims if times > 1 + (trial in claimed_trials)}
        part.troubles += [f"claimed twice: {trial}" for trial in again]
        part.troubles += sweep.troubles(undisturbed.table, undisturbed.limit_s)
    keep("Four commands at once, the driver of one killed", part)
    assert part.troubles == [], f"seed {SEED}"


HOG_BYTES, SPARE_BYTES, SAFE_BYTES = 4_500_000_000, 4_000_000_000, 6_000_000_000
"""Ray kills workers once memory use has grown by `SPARE_BYTES`; the sweep itself uses 1.7 GB."""
HOG = f"import time; memory = b'x' * {HOG_BYTES}; time.sleep(8)"
NAMED = re.compile("low on memory|out of memory|Memory ran out")


@contextmanager
def hog() -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", HOG])
    try:
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.chaos(0, 10)
def test_sweep_survives_memory_hog(
    undisturbed: Undisturbed, tmp_path: Path, rounds: int, keep: Keep
) -> None:
    """A round counts only if Ray kills a worker in it."""
    chance, parts = random.Random(SEED), list[Round]()
    for number in range(3 * rounds):
        memory = machine_memory()
        if memory.free_bytes < SAFE_BYTES:
            pytest.skip(f"needs 6 GB of free memory; {memory.free_bytes / 1e9:.1f} GB are free")
        share = 1 - (memory.free_bytes - SPARE_BYTES) / memory.total_bytes
        part = Round("memory")
        with TypedSweep(tmp_path / str(number), *OPTIONS) as sweep:
            typed = sweep.type(RAY_memory_usage_threshold=str(share))
            time.sleep(chance.uniform(0, undisturbed.seconds) if parts else 0.0)
            begin_s = time.monotonic()
            with hog():
                part.troubles = typed.troubles(undisturbed.limit_s)
            part.seconds = time.monotonic() - begin_s
            part.troubles += sweep.troubles(undisturbed.table, undisturbed.limit_s)
        if part.troubles or NAMED.search(typed.text):
            keep("Another program takes the memory", part)
            parts.append(part)
        if len(parts) == rounds:
            break
    assert len(parts) == rounds, "Ray killed too few workers, or no message named memory"
    assert [part for part in parts if part.troubles] == [], f"seed {SEED}"
