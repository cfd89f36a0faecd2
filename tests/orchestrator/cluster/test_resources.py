from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cluster.resources import check_gpus, slots_of
from orchestrator.cluster.run_options import RunOptions
from orchestrator.storage.storage import FolderStorage
from trainables.errors import UserError
from trainables.runtime import Runtime

SMALL = {"CPU": 2.0}
GPU_HOST = {"CPU": 16.0, "GPU": 2.0}


def options(threads: int = 1, **changes: Any) -> RunOptions:
    runtime = Runtime(threads=threads)
    return RunOptions(storage=FolderStorage(Path()), runtime=runtime, **changes)


@pytest.mark.parametrize(
    ("nodes", "demand", "slots"),
    [
        ([SMALL, GPU_HOST], options(), 18),
        ([GPU_HOST], options(threads=3), 5),
        ([SMALL, GPU_HOST], options(gpus_per_trial=1), 2),
        ([GPU_HOST], options(gpus_per_trial=0.4), 4),  # two on each GPU
        ([{"CPU": 3.0, "GPU": 2.0}], options(gpus_per_trial=0.25), 3),  # each needs a core
        ([GPU_HOST], options(threads=10, gpus_per_trial=1), 1),
    ],
)
def test_slots(nodes: list[dict[str, float]], demand: RunOptions, slots: int) -> None:
    assert slots_of(nodes, demand) == slots


@pytest.mark.parametrize(
    ("nodes", "demand", "message"),
    [
        ([SMALL], options(gpus_per_trial=1), "needs 1 GPU, but there are 0"),
        (
            [GPU_HOST],
            options(threads=17, gpus_per_trial=0.5),
            "needs 17 of one machine's cores and 0.5 of its GPUs. .* 16 cores; .* 2 GPUs",
        ),
        (
            [{"CPU": 4.0}, {"GPU": 1.0}],
            options(gpus_per_trial=1),
            "needs 1 of one machine's cores and 1 of its GPUs. .* 4 cores; .* 1 GPUs",
        ),
        ([SMALL], options(threads=3), "needs 3 of one machine's cores. .* 2 cores;"),
    ],
)
def test_oversized_request_names_both_numbers(
    nodes: list[dict[str, float]], demand: RunOptions, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        slots_of(nodes, demand)


@pytest.mark.parametrize("gpus", [-1, 1.5, 2, 64, math.inf, -math.inf, math.nan])
def test_impossible_gpus_are_refused(gpus: float) -> None:
    with pytest.raises(UserError, match="--gpus-per-trial"):
        check_gpus(gpus)
