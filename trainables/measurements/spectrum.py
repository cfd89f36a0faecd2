"""Singular values of a matrix that arrives in blocks of rows and is never held as a whole, unless
it is a wide one.

Two methods, both in float64 with memory for one V x V matrix and one block of rows. Legend: N rows
(contexts), V columns (vocabulary). A wide matrix (N < V) is gathered and its transpose streamed:
the same singular values for one N x N matrix.

- gram adds up A^T A by symmetric rank-k updates and takes the roots of its eigenvalues. Fast, but
  squaring costs half of the digits.
- qr folds each block of rows into the triangle R of A = Q R by Householder reflections and takes
  its singular values. Every digit, two to three times the time.

How small a singular value each can tell from zero is `resolution`; see there.
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
"""Largest absolute values whose squares, summed over any matrix that fits a disk, stay inside
float64's range."""
BLOCK_BYTES = 64 * 2**20
QR_PANEL = 64
"""Columns that LAPACK treats together; within 7% of the fastest of 32, 64 and 128 at V = 2,000 and
4,000."""


@dataclass(frozen=True, eq=False)
class Spectrum:
    """All min(N, V) singular values of an N x V matrix, descending, float64, and the method that
    gave them."""

    singular_values: NDArray[np.float64]
    rows: int
    columns: int
    method: Method


def resolution(method: Method, *, rows: int, columns: int) -> float:
    """The smallest sigma / sigma_max that a method tells from zero, for a `rows` x `columns` matrix
    that is streamed by its narrower side, n = min(N, V); eps is float64's.

    gram: 5 sqrt(eps) n^(1/4). Rounding moves the eigenvalues sigma^2 by less than eps sqrt(n)
    sigma_max^2 (zeros by 2 to 17 eps where it was measured, n from 100 to 4,000; of wide matrices
    10 x 400 to 512 x 10,000 by less than 9 eps and sqrt(n) eps), so a zero comes out below a fifth
    of the resolution, a value at the resolution is off by less than eps sqrt(n) / (2 * 25 eps
    sqrt(n)) = 2%, and one r times larger by 2% / r^2. The Press tolerance of float32 is above the
    resolution for every shape.

    qr: 0.5 sqrt(N + V + 1) eps, which is the Press tolerance of float64 itself: the rounding that
    Press et al. (2007, section 2.6) expect of a singular value decomposition. Zeros came out below
    two thirds of it from 10 x 10 upwards."""
    if method == "gram":
        return 5 * math.sqrt(FLOAT64_EPS * math.sqrt(min(rows, columns)))
    return 0.5 * math.sqrt(rows + columns + 1) * FLOAT64_EPS


class SpectrumStream:
    """Takes an N x V matrix in blocks of rows, in any number of `update` calls, then `finish` gives
    its spectrum by one of the two methods.

    How the rows are cut into calls changes nothing but rounding. Stream the transpose of a wide
    matrix, as `matrix_spectrum` does: fewer rows than columns cost the time of V rows, and zeros
    the rounding.

    Raises UserError if one V x V matrix of float64 does not fit the memory."""

    def __init__(self, method: Method, columns: int) -> None:
        self.method, self.columns, self.rows = method, columns, 0
        self._largest = 0.0
        try:
            self._square_VV = np.zeros((columns, columns), order="F")
        except MemoryError as error:
            raise UserError(
                f"The spectrum of a matrix whose narrower side is {columns:,} needs "
                f"{8e-9 * columns**2:,.1f} GB of memory, more than there is: keep fewer columns or "
                "fewer rows."
            ) from error

    def update(self, rows_NV: NDArray[np.floating[Any]]) -> None:
        """Add rows: float16, float32 or float64, in any byte order and memory layout, memory-mapped
        or not.

        Raises UserError if a row has a NaN or an infinity; the message counts rows from 0, over all
        calls."""
        step = max(1, BLOCK_BYTES // (8 * self.columns))
        for start in range(0, len(rows_NV), step):
            PULSE.touch()
            block_NV = rows_NV[start : start + step]
            self._largest = max(self._largest, largest_magnitude(block_NV, first_row=self.rows))
            self.rows += len(block_NV)
            if self.method == "gram":
                # The transpose of rows in C order is in the order that BLAS reads, so neither
                # operand is copied.
                columns_VN = np.ascontiguousarray(block_NV, dtype=np.float64).T
                self._square_VV = blas.dsyrk(
                    1.0, columns_VN, beta=1.0, c=self._square_VV, lower=1, overwrite_c=1
                )
                continue
            # A copy even if the order is right already, since LAPACK leaves its reflectors in it.
            scratch_NV = np.array(block_NV, dtype=np.float64, order="F")
            panel = min(QR_PANEL, self.columns)
            self._square_VV, _, _, info = lapack.dtpqrt(
                0, panel, self._square_VV, scratch_NV, overwrite_a=1, overwrite_b=1
            )
            assert info == 0, f"dtpqrt returned {info}"

    def gram(self) -> NDArray[np.float64]:
        """A^T A of all rows so far, by the method gram: its lower triangle, in Fortran order.

        Raises UserError if a value is too large or too small to be squared."""
        low, high = SQUARE_SAFE
        if self._largest and not low < self._largest < high:
            raise UserError(
                f"The Gram matrix squares the values, so the largest must be within {low:g} and "
                f"{high:g}, and it is {self._largest:g}: rescale the matrix, or use the streamed "
                "QR (--method qr)."
            )
        return self._square_VV

    def finish(self) -> Spectrum:
        """The spectrum of all rows so far. Overwrites the V x V matrix: no rows can follow.

        Raises UserError as `gram` does."""
        if self.method == "gram":
            # Imported here, since torch takes seconds to load and a report needs only the functions
            # of this module.
            from trainables.measurements.decomposition import eigenvalues_in_place

            values_V = np.sqrt(np.maximum(eigenvalues_in_place(self.gram())[::-1], 0.0))
        else:
            PULSE.touch(quiet_s=4 * self.columns**3 / SLOWEST_FLOPS)
            values_V = svd(self._square_VV, compute_uv=False, overwrite_a=True, check_finite=False)
        values = values_V[: min(self.rows, self.columns)]
        return Spectrum(values, self.rows, self.columns, self.method)


def log_p_spectrum(
    log_p_chunks: Iterable[NDArray[np.floating[Any]]],
    *,
    rows: int,
    columns: int,
    method: Method = "gram",
) -> Spectrum:
    """The spectrum of a log-P matrix that comes in chunks of rows (contexts), `rows` in all;
    `columns` is the vocabulary's size. If rows are so few that it takes less memory, the chunks are
    kept, in their own precision, and streamed by columns. Raises UserError as a stream does."""
    if is_wide(rows, columns):
        return _wide_spectrum(list(log_p_chunks), method)
    stream = SpectrumStream(method, columns)
    for chunk_NV in log_p_chunks:
        stream.update(chunk_NV)
    return stream.finish()


def is_wide(rows: int, columns: int) -> bool:
    """Whether a log-P matrix of float32 and the Gram matrix of its rows take less memory than that
    of its columns."""
    return 4 * rows * columns + 8 * rows**2 < 8 * columns**2


def matrix_spectrum(matrix_NV: NDArray[np.floating[Any]], *, method: Method = "gram") -> Spectrum:
    """The spectrum of a matrix in memory or memory-mapped, streamed by its narrower side.

    Raises UserError as a stream does, with the number of a bad row also if the transpose is
    streamed."""
    rows, columns = matrix_NV.shape
    if rows < columns:
        return _wide_spectrum([matrix_NV], method)
    return log_p_spectrum([matrix_NV], rows=rows, columns=columns, method=method)


def _wide_spectrum(chunks: Sequence[NDArray[np.floating[Any]]], method: Method) -> Spectrum:
    """Stream the transpose, some columns at a time."""
    rows, columns = 0, chunks[0].shape[1]
    # Here, since the stream of the transpose would count columns.
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
    """The largest absolute value of a block with at least one row and column.

    Raises UserError with the number of the first row that has a NaN or an infinity; the block's own
    first row counts as `first_row`."""
    # Two reductions without a temporary; a NaN anywhere makes both of them NaN.
    largest = max(-float(block_NV.min()), float(block_NV.max()))
    if not math.isfinite(largest):
        bad_row = int(np.argmin(np.isfinite(block_NV).all(axis=1)))
        raise bad_row_error(first_row + bad_row)
    return largest


def bad_row_error(row: int) -> UserError:
    """Of a row, counted from 0, that has a NaN or an infinity."""
    return UserError(
        f"Every value of the matrix must be finite, and row {row} (counted from 0) has a NaN or an "
        "infinity: remove that row, or compute it again."
    )
