"""Numerical GPU tests that need only torch, numpy, scipy, pydantic and pytest.

They also run on a CPU; `-m gpu` selects the runs on a GPU.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch

from trainables.device import repeat_bits

# cuBLAS reads this at its first use, in any test.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if name == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch finds no GPU")
    return name


@pytest.fixture
def same_bits() -> Iterator[None]:
    repeat_bits(True)
    yield
    repeat_bits(False)
