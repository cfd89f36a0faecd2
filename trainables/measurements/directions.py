"""The leading right singular vectors of a log-P matrix with centred rows, from its Gram matrix in
float64.

The rows come anew for every pass, so that no N x V matrix is held, but where rows are so few that
the Gram matrix of the rows is the smaller one: then it is gathered once, in its own precision.

Legend: N rows (contexts), V columns (vocabulary), n the narrower side, S rows of a sample, R
directions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from trainables.device import free_bytes, on_gpu
from trainables.measurements.eigenvectors import SymmetricMatrix
from trainables.measurements.spectrum import FLOAT64_EPS, GramSpectrum, bad_row_error, is_wide
from trainables.pulse import PULSE

SAMPLE_ROWS = 1024
BLOCK_VALUES, GPU_BLOCK_VALUES = 2**19, 2**25
"""Of log P that are worked on at a time: on a CPU as many as its cache holds."""
PANEL = 1024
"""Columns of a wide matrix that are converted to float64 at once."""

Chunks = Callable[[], Iterable[Tensor]]
"""Gives an N x V log-P matrix in chunks of rows, on one device; the same again at every call."""


class Directions:
    """The right singular vectors of L, a log-P matrix with every row centred, made as they are
    needed."""

    def __init__(self, chunks: Chunks, *, rows: int, columns: int) -> None:
        """Raises UserError for a NaN or an infinity, with its row, and where the Gram matrix does
        not fit the memory, torch.OutOfMemoryError where it does not fit a GPU's."""
        self._chunks, self._wide = chunks, is_wide(rows, columns)
        self._sample = list[Tensor]()
        self._stride = math.ceil(rows / SAMPLE_ROWS)
        sampled = self._sampled()
        self._decomposed = (
            _wide_gram(sampled, rows, columns) if self._wide else _gram(sampled, columns)
        )
        squares_n = np.maximum(self._decomposed.eigenvalues_V, 0.0)
        self._sigma_n = np.sqrt(squares_n)
        self.count = int(np.count_nonzero(squares_n > len(squares_n) * FLOAT64_EPS * squares_n[0]))
        """How many there are above rounding."""
        self._left_out_n = np.append(np.cumsum(squares_n[::-1])[::-1], 0.0)
        self._vectors_VR: Tensor | None = None

    def sample(self) -> Tensor:
        """Evenly spaced rows of log P: all, or at least 512."""
        return torch.cat(self._sample)

    def rank_leaving(self, squares: float) -> int:
        """The least rank whose best approximation leaves out no more than this sum of squared
        singular values."""
        return min(self.count, int(np.argmax(self._left_out_n <= squares)))

    def leading(self, rank: int) -> Tensor:
        """V x R: the `rank` first directions, and perhaps more: all where these are half of
        them."""
        made_VR, few = self._vectors_VR, 2 * rank < self.count
        if made_VR is None or made_VR.shape[1] < (rank if few else self.count):
            # Some more, for what is asked next.
            made_VR = self._vectors_VR = self._made(rank + rank // 4 if few else self.count)
        return made_VR

    def _made(self, count: int) -> Tensor:
        vectors_nR = self._decomposed.leading(count)
        if not self._wide:
            return vectors_nR
        # V = L^T U / sigma
        scaled_NR = vectors_nR / torch.from_numpy(self._sigma_n[:count]).to(vectors_nR.device)
        product_VR, row = torch.zeros(0), 0
        for block_NV in blocks(self._chunks()):
            if not row:
                product_VR = scaled_NR.new_zeros(block_NV.shape[1], count)
            product_VR.addmm_(centred(block_NV).T, scaled_NR[row : row + len(block_NV)])
            row += len(block_NV)
        return product_VR

    def _sampled(self) -> Iterator[Tensor]:
        """The chunks, all finite, of which the sample is kept."""
        row = 0
        for chunk_NV in self._chunks():
            PULSE.touch()
            finite_N = chunk_NV.isfinite().all(1)
            if not finite_N.all():
                raise bad_row_error(row + int((~finite_N).int().argmax()))
            self._sample.append(chunk_NV[-row % self._stride :: self._stride].clone())
            row += len(chunk_NV)
            yield chunk_NV


def fits_gpu(tensor: Tensor, *, rows: int, columns: int) -> bool:
    """Whether the tensor lies on a GPU that has the memory for this work now: the Gram matrix, its
    eigenvectors, what torch needs to find them, the rows of a wide matrix, and some blocks."""
    if not on_gpu(tensor):
        return False
    wide = is_wide(rows, columns)
    side = rows if wide else columns
    gathered = 8 * (rows * columns + columns * side) if wide else 0
    return 8 * (5 * side**2 + 8 * GPU_BLOCK_VALUES) + gathered <= free_bytes()


def blocks(chunks: Iterable[Tensor], *, least_rows: int = 16) -> Iterator[Tensor]:
    """The same rows, fewer at a time, in float64."""
    for chunk_NV in chunks:
        values = GPU_BLOCK_VALUES if on_gpu(chunk_NV) else BLOCK_VALUES
        for block_NV in chunk_NV.split(max(least_rows, values // chunk_NV.shape[1])):
            PULSE.touch()
            yield block_NV.double()


def centred(block_NV: Tensor) -> Tensor:
    """Less the mean of each row."""
    return block_NV - block_NV.mean(1, keepdim=True)


def _gram(chunks: Iterable[Tensor], columns: int) -> SymmetricMatrix:
    """L^T L."""
    return _sum_of_squares(map(centred, blocks(chunks)), columns)


def _wide_gram(chunks: Iterable[Tensor], rows: int, columns: int) -> SymmetricMatrix:
    """L L^T."""
    matrix_NV, filled = torch.empty(0), 0
    for chunk_NV in chunks:
        if not filled:
            matrix_NV = chunk_NV.new_empty(rows, columns)
        matrix_NV[filled : filled + len(chunk_NV)] = chunk_NV
        filled += len(chunk_NV)
    assert filled == rows, f"{filled} rows came, {rows} were promised"
    mean_N1 = matrix_NV.mean(1, keepdim=True, dtype=torch.float64)
    panels = (
        (panel_NP.double() - mean_N1).T.contiguous() for panel_NP in matrix_NV.split(PANEL, dim=1)
    )
    return _sum_of_squares(panels, rows)


def _sum_of_squares(parts: Iterator[Tensor], side: int) -> SymmetricMatrix:
    """X^T X of the matrix X whose rows come in parts, M x n."""
    first_Mn = next(parts, None)
    together = chain([] if first_Mn is None else [first_Mn], parts)
    if first_Mn is not None and on_gpu(first_Mn):
        square_nn = first_Mn.new_zeros(side, side)
        for part_Mn in together:
            square_nn.addmm_(part_Mn.T, part_Mn)
        return SymmetricMatrix(square_nn)
    stream = GramSpectrum(side)  # which makes half of the symmetric product
    for part_Mn in together:
        stream.update(part_Mn.numpy())
    return SymmetricMatrix(torch.from_numpy(stream.gram()))
