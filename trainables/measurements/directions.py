"""The leading right singular vectors of a log-P matrix with centred rows, from its Gram matrix in
float64.

Every pass computes the rows again, so that no N x V matrix is held, unless rows are so few that
the Gram matrix of the rows is the smaller one: then it is gathered once, in its own precision.

Legend: N rows (contexts), V columns (vocabulary), n the narrower side, S rows of a sample, R
directions."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from trainables.measurements.chunks import Chunks, blocks, centred, finite, gram
from trainables.measurements.eigenvectors import SymmetricMatrix
from trainables.measurements.spectrum import FLOAT64_EPS, is_wide

SAMPLE_ROWS = 1024


class Directions:
    """The right singular vectors of L, a log-P matrix with every row centred, made as they are
    needed."""

    def __init__(self, chunks: Chunks, *, rows: int, columns: int) -> None:
        """Raises UserError for a NaN or an infinity, with its row, and if the Gram matrix does not
        fit the memory, torch.OutOfMemoryError if it does not fit a GPU's."""
        self._chunks, self._wide = chunks, is_wide(rows, columns)
        self._sample = list[Tensor]()
        sampled = self._sampled(math.ceil(rows / SAMPLE_ROWS))
        self._decomposed = SymmetricMatrix(gram(sampled, rows, columns, centre=True))
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

    def _sampled(self, stride: int) -> Iterator[Tensor]:
        """The chunks, all finite, of which the sample is kept."""
        row = 0
        for chunk_NV in finite(self._chunks()):
            self._sample.append(chunk_NV[-row % stride :: stride].clone())
            row += len(chunk_NV)
            yield chunk_NV
