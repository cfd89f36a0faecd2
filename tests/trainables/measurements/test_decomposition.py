"""Which algorithm is asked for singular values, on a processor and on a GPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from trainables.measurements.decomposition import singular_values


def test_they_are_those_of_lapack() -> None:
    matrices = torch.randn(2, 5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    np.testing.assert_allclose(singular_values(matrices).numpy(), np.linalg.svd(matrices.numpy())[1], rtol=1e-12)


@pytest.mark.parametrize(("on_gpu", "driver"), [(True, "gesvd"), (False, None)])
def test_a_gpu_is_asked_for_the_qr_algorithm(on_gpu: bool, driver: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no GPU to ask here, so this looks at the question; Jacobi's, its default, stops at a tolerance."""
    asked: list[Any] = []
    monkeypatch.setattr(torch.linalg, "svdvals", lambda matrices, *, driver: asked.append((matrices, driver)))
    matrices: Any = SimpleNamespace(is_cuda=on_gpu)
    singular_values(matrices)
    assert asked == [(matrices, driver)]
