"""Another program takes the memory at a random moment of a real sweep: Ray ends workers, and the
sweep goes on."""

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
from tests.support.disturbed import OPTIONS, SEED, Keep, Round, Undisturbed
from tests.support.typed_sweep import TypedSweep

HOG_BYTES, SPARE_BYTES, SAFE_BYTES = 4_500_000_000, 4_000_000_000, 6_000_000_000
"""Ray ends workers once `SPARE_BYTES` more are in use than before the sweep, which takes 1.7 GB
itself."""
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


@pytest.mark.timeout(0)
@pytest.mark.chaos(0, 10)
def test_a_memory_hog_does_not_end_the_sweep(
    undisturbed: Undisturbed, tmp_path: Path, rounds: int, keep: Keep
) -> None:
    """The first of several rounds begins with the hog."""
    chance, parts = random.Random(SEED), list[Round]()
    for _ in range(3 * rounds):
        if len(parts) == rounds:
            break
        memory = machine_memory()
        if memory.free_bytes < SAFE_BYTES:
            pytest.skip(f"needs 6 GB of free memory, and {memory.free_bytes / 1e9:.1f} are free")
        share = 1 - (memory.free_bytes - SPARE_BYTES) / memory.total_bytes
        moment_s = chance.uniform(0, undisturbed.seconds) if parts or rounds == 1 else 0.0
        part = Round("memory", undisturbed.slowness, moment_s=moment_s)
        with TypedSweep(tmp_path / str(time.monotonic()), *OPTIONS) as sweep:
            typed = sweep.type(RAY_memory_usage_threshold=str(share))
            time.sleep(moment_s)
            with hog():
                part.troubles = typed.troubles(undisturbed.limit_s)
            part.ended_s = time.monotonic() - typed.start_s - moment_s
            part.troubles += sweep.troubles(undisturbed.table, undisturbed.limit_s)
        if part.troubles or NAMED.search(typed.text):
            parts.append(part)
            keep("memory-hogs", part)
    assert len(parts) == rounds, "most hogs hit nothing, or no sentence named memory"
    assert [part for part in parts if part.troubles] == [], f"seed {SEED}"
