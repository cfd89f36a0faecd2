"""What a GPU does with the numbers: `python -m pytest tests/gpu` needs torch, numpy, scipy,
pydantic and pytest alone.

Every test runs on a CPU, too, so that it is itself tried where there is no GPU; there what is
checked of a GPU holds anyway. `-m gpu` leaves the CPU out. Without numbers,
tests/trainables/test_device.py checks dtypes; `prove-gpu` shows that steps wait for nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch

from trainables.device import repeat_bits

# Read when cuBLAS is first used, by whatever test comes first.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> str:
    """The name of a device that is here."""
    name: str = request.param
    if name == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no GPU here that torch can use")
    return name


@pytest.fixture
def same_bits() -> Iterator[None]:
    """As with --deterministic."""
    repeat_bits(True)
    yield
    repeat_bits(False)
