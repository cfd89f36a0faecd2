"""Singular values by the same algorithm on every device."""

from __future__ import annotations

import torch
from torch import Tensor


def singular_values(matrices: Tensor) -> Tensor:
    """Descending, in the matrices' own precision; LAPACK's, or on a GPU the QR algorithm, as Jacobi's stops at a
    tolerance."""
    values: Tensor = torch.linalg.svdvals(matrices, driver="gesvd" if matrices.is_cuda else None)
    return values
