"""Singular values, in float64, of a matrix that arrives in blocks of rows.

Memory holds one V x V matrix and one block. A wide matrix (N < V) is kept whole, with
one N x N matrix.

- gram: square roots of the eigenvalues of A^T A. Fast, but squaring costs half of the digits.
- qr: singular values of R in A = Q R. Keeps every digit, but takes two to three times as long.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack, svd

from trainables.errors import UserError
from trainables.pulse import PULSE, SLOWEST_FLOPS

Method = Literal["gram", "qr"]
FLOAT64_EPS = float(np.finfo(np.float64).eps)
SQUARE_SAFE = (1e-140, 1e140)
"""If the largest entry is in this range, sums of squares fit in a float64."""
BLOCK_BYTES = 64 * 2**20
QR_PANEL = 64
"""Columns per QR step, within 7% of the fastest at V = 2,000 and 4,000."""


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Singular values of an N x V matrix: all min(N, V), descending, in float64."""

    singular_values: NDArray[np.float64]
    rows: int
    columns: int
    method: Method


def resolution(method: Method, *, rows: int, columns: int) -> float:
    """Return the smallest sigma / sigma_max that `method` distinguishes from zero.

    n = min(N, V), and eps is float64's.

    - gram: 5 sqrt(eps) n^(1/4), always below the Press tolerance of float32. For a singular
      value of 0, the method returns less than a fifth of the resolution. A value of r times the
      resolution has an error below 2% / r^2.
    - qr: 0.5 sqrt(N + V + 1) eps, the Press tolerance of float64.
    """
    # gram: rounding moves the eigenvalues sigma^2 by less than eps sqrt(n) sigma_max^2 (measured on
    # zeros: at most 17 eps for n from 10 to 4,000). qr: measured zeros were below 2/3 of it.
    if method == "gram":
        return 5 * math.sqrt(FLOAT64_EPS * math.sqrt(min(rows, columns)))
    return 0.5 * math.sqrt(rows + columns + 1) * FLOAT64_EPS


class SpectrumStream:
    """Spectrum of an N x V matrix: `update` adds blocks of rows, `finish` returns the spectrum.

    For N < V, stream the transpose, which is faster and rounds less. Raises UserError if a V x V
    float64 matrix exceeds memory.
    """

    def __init__(self, method: Method, columns: int) -> None:
        self.method, self.columns, self.rows = method, columns, 0
        self._largest = 0.0
        try:
            self._square_VV = np.zeros((columns, columns), order="F")
        except MemoryError as error:
            raise UserError(
                f"The spectrum of a matrix whose narrower side is {columns:,} needs "
                f"{8e-9 * columns**2:,.1f} GB of memory, more than is free. Keep fewer columns or "
                "rows."
            ) from error

    def update(self, rows_NV: NDArray[np.floating[Any]]) -> None:
        """Add rows: float16, float32 or float64, in any byte order and memory layout.

        Raises UserError with the row of a NaN or an infinity, counted over all calls.
        """
        step = max(1, BLOCK_BYTES // (8 * self.columns))
        for start in range(0, len(rows_NV), step):
            PULSE.touch()
            block_NV = rows_NV[start : start + step]
            self._largest = max(self._largest, largest_magnitude(block_NV, first_row=self.rows))
            self.rows += len(block_NV)
            if self.method == "gram":
                # The transpose of C-ordered rows is in the order that BLAS reads, so neither
                # operand is copied.
                columns_VN = np.ascontiguousarray(block_NV, dtype=np.float64).T
                self._square_VV = blas.dsyrk(
                    1.0, columns_VN, beta=1.0, c=self._square_VV, lower=1, overwrite_c=1
                )
                continue
            # Always copy, because LAPACK leaves its reflectors in the array.
            scratch_NV = np.array(block_NV, dtype=np.float64, order="F")
            panel = min(QR_PANEL, self.columns)
            self._square_VV, _, _, info = lapack.dtpqrt(
                0, panel, self._square_VV, scratch_NV, overwrite_a=1, overwrite_b=1
            )
            assert info == 0, f"dtpqrt returned {info}"

    def gram(self) -> NDArray[np.float64]:
        """Return the lower triangle of A^T A of all rows so far (method gram), in Fortran order.

        Raises UserError if squares would exceed float64.
        """
        low, high = SQUARE_SAFE
        if self._largest and not low < self._largest < high:
            raise UserError(
                f"The largest value must be between {low:g} and {high:g}, because the Gram matrix "
                f"squares it, but is {self._largest:g}. Rescale the matrix, or use the streamed "
                "QR (--method qr)."
            )
        return self._square_VV

    def finish(self) -> Spectrum:
        """Return the spectrum. Raises as `gram` does."""
        if self.method == "gram":
            values_V = np.sqrt(np.maximum(eigenvalues(self.gram())[::-1], 0.0))
        else:
            PULSE.touch(quiet_s=4 * self.columns**3 / SLOWEST_FLOPS)
            values_V = svd(self._square_VV, compute_uv=False, overwrite_a=True, check_finite=False)
        values = values_V[: min(self.rows, self.columns)]
        return Spectrum(values, self.rows, self.columns, self.method)


def eigenvalues(symmetric_VV: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return all eigenvalues, ascending, of the symmetric matrix with this lower triangle."""
    PULSE.touch(quiet_s=4 / 3 * len(symmetric_VV) ** 3 / SLOWEST_FLOPS)
    # numpy copies the matrix, but releases the GIL, so that heartbeats go on. scipy holds it.
    return np.asarray(np.linalg.eigvalsh(symmetric_VV), dtype=np.float64)


def log_p_spectrum(
    log_p_chunks: Iterable[NDArray[np.floating[Any]]],
    *,
    rows: int,
    columns: int,
    method: Method = "gram",
) -> Spectrum:
    """Return the spectrum of a log-P matrix that arrives in chunks of rows.

    Raises as `SpectrumStream` does. Keeps the chunks and streams columns if that takes less memory.
    """
    if is_wide(rows, columns):
        return _wide_spectrum(list(log_p_chunks), method)
    stream = SpectrumStream(method, columns)
    for chunk_NV in log_p_chunks:
        stream.update(chunk_NV)
    return stream.finish()


def is_wide(rows: int, columns: int) -> bool:
    """Return True if streaming columns takes less memory than streaming rows."""
    return 4 * rows * columns + 8 * rows**2 < 8 * columns**2


def matrix_spectrum(matrix_NV: NDArray[np.floating[Any]], *, method: Method = "gram") -> Spectrum:
    """Return the spectrum of a matrix, possibly memory-mapped. Raises as `SpectrumStream` does."""
    rows, columns = matrix_NV.shape
    if rows < columns:
        return _wide_spectrum([matrix_NV], method)
    return log_p_spectrum([matrix_NV], rows=rows, columns=columns, method=method)


def _wide_spectrum(chunks: Sequence[NDArray[np.floating[Any]]], method: Method) -> Spectrum:
    rows, columns = 0, chunks[0].shape[1]
    # Checked here because the stream of the transpose would count columns.
    for chunk_NV in chunks:
        largest_magnitude(chunk_NV, first_row=rows)
        rows += len(chunk_NV)
    stream = SpectrumStream(method, rows)
    step = max(1, BLOCK_BYTES // (8 * rows))
    for start in range(0, columns, step):
        panel_NP = np.concatenate([chunk_NV[:, start : start + step] for chunk_NV in chunks])
        stream.update(panel_NP.T)
    return replace(stream.finish(), rows=rows, columns=columns)


def largest_magnitude(block_NV: NDArray[np.floating[Any]], *, first_row: int) -> float:
    """Return the largest absolute value. Raises UserError with the row of a NaN or an infinity."""
    # Two reductions need no temporary array; a NaN makes both NaN.
    largest = max(-float(block_NV.min()), float(block_NV.max()))
    if not math.isfinite(largest):
        bad_row = int(np.argmin(np.isfinite(block_NV).all(axis=1)))
        raise bad_row_error(first_row + bad_row)
    return largest


def bad_row_error(row: int) -> UserError:
    """Return the error for a non-finite row."""
    return UserError(
        f"The matrix has a NaN or an infinity in row {row} (counted from 0). "
        "Remove that row, or compute it again."
    )
