"""Singular values on any device, and in-place eigenvalues of a large symmetric matrix.

Matrix products reduce a symmetric matrix to a band (Bischof, Lang and Sun 2000, ACM TOMS 26(4)).
This is as fast as LAPACK at 2,000 columns, twice as fast at 8,000.

Shapes: V rows and columns, M rows not yet reduced, B bandwidth.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import eigvals_banded
from torch import Tensor

from trainables.device import svd_driver
from trainables.pulse import PULSE, SLOWEST_FLOPS

BANDWIDTH = 48
"""Fastest of the bandwidths from 24 to 96 at V = 4,000."""
BLOCK = 512
"""Columns per matrix product. Values from 256 to 1,000 are equally fast."""


def singular_values(matrices: Tensor) -> Tensor:
    """Return the singular values, descending."""
    values: Tensor = torch.linalg.svdvals(matrices, driver=svd_driver(matrices))
    return values


def eigenvalues_in_place(symmetric_VV: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return all V eigenvalues, ascending, of a symmetric float64 matrix, and overwrite the matrix.

    Reads the lower triangle and needs memory for 6 V B more numbers. Errors are a few eps of the
    largest eigenvalue.
    """
    band_BV = _band(torch.from_numpy(symmetric_VV), max(1, min(BANDWIDTH, len(symmetric_VV) - 1)))
    PULSE.touch(quiet_s=6 * len(band_BV) * len(symmetric_VV) ** 2 / SLOWEST_FLOPS)
    values: NDArray[np.float64] = eigvals_banded(
        band_BV.numpy(), lower=True, overwrite_a_band=True, check_finite=False
    )
    return values


def _band(matrix_VV: Tensor, width: int) -> Tensor:
    """Return the lower diagonals of a band matrix, (B + 1) x V, with `matrix_VV`'s eigenvalues."""
    size = len(matrix_VV)
    for left, right in _column_blocks(size):
        square = matrix_VV[left:right, left:right]
        upper = torch.ones_like(square, dtype=torch.bool).triu(1)
        square.copy_(torch.where(upper, square.T, square))
    band_BV = matrix_VV.new_zeros(width + 1, size)
    for start in range(0, size, width):
        PULSE.touch()
        end = min(start + width, size)
        corner = matrix_VV[start:end, start:end]
        for offset in range(end - start):
            band_BV[offset, start : end - offset] = corner.diagonal(-offset)
        if end < size:
            triangle = _reduce_columns(matrix_VV[end:, start:end], matrix_VV[end:, end:])
            for right in range(end - start):
                diagonal = triangle.diagonal(right)
                band_BV[width - right, start + right : start + right + len(diagonal)] = diagonal
    return band_BV


def _reduce_columns(panel_MB: Tensor, trailing_MM: Tensor) -> Tensor:
    """Return R of panel = Q R; overwrite the trailing matrix A with Q^T A Q.

    Q^T A Q = A - Y X^T - X Y^T, with Q = I - Y T Y^T, W = A Y T and X = W - Y T^T (Y^T W) / 2.
    """
    factored_MB, tau_B = torch.geqrf(panel_MB)
    count = len(tau_B)
    reflectors_MB, inverse_BB = reflectors(factored_MB[:, :count], tau_B)
    identity_BB = torch.eye(count, dtype=tau_B.dtype)
    scaled_MB = reflectors_MB @ torch.linalg.solve_triangular(inverse_BB, identity_BB, upper=True)
    product_MB = _symmetric_product(trailing_MM, scaled_MB)
    product_MB.addmm_(reflectors_MB, scaled_MB.T @ product_MB, alpha=-0.5)
    left_M2B = torch.cat([reflectors_MB, product_MB], dim=1)
    right_M2B = torch.cat([product_MB, reflectors_MB], dim=1)
    for left, right in _column_blocks(len(trailing_MM)):
        trailing_MM[left:, left:right].addmm_(left_M2B[left:], right_M2B[left:right].T, alpha=-1.0)
    return factored_MB[:count].triu()


def reflectors(stored_MB: Tensor, tau_B: Tensor) -> tuple[Tensor, Tensor]:
    """Return Y and T^-1 of Householder reflectors, such that H_1 ... H_B = I - Y T Y^T.

    `stored_MB` is Y without its unit diagonal. T^-1 is the strict upper triangle of Y^T Y plus
    diag(1 / tau).
    """
    nonzero_B = tau_B != 0  # a reflector with tau = 0 is the identity
    y_MB = stored_MB.tril(-1)
    y_MB.diagonal().fill_(1.0)
    y_MB *= nonzero_B
    inverse_BB = (y_MB.T @ y_MB).triu(1)
    inverse_BB.diagonal().copy_(1.0 / torch.where(nonzero_B, tau_B, 1.0))
    return y_MB, inverse_BB


def _symmetric_product(trailing_MM: Tensor, thin_MB: Tensor) -> Tensor:
    product_MB = torch.zeros_like(thin_MB)
    for left, right in _column_blocks(len(trailing_MM)):
        product_MB[left:].addmm_(trailing_MM[left:, left:right], thin_MB[left:right])
        product_MB[left:right].addmm_(trailing_MM[right:, left:right].T, thin_MB[right:])
    return product_MB


def _column_blocks(size: int) -> Iterator[tuple[int, int]]:
    # From the end, so that all trailing submatrices have equal block bounds.
    for right in range(size, 0, -BLOCK):
        yield max(0, right - BLOCK), right
