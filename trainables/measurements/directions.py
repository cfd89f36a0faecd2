"""Leading right singular vectors of a log-P matrix with centred rows, from its float64 Gram matrix.

Every pass over the matrix recomputes its rows.
"""

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
    """Right singular vectors of a log-P matrix, computed on demand.

    Raises UserError for a NaN or an infinity. If the Gram matrix exceeds memory, raises UserError
    (CPU) or torch.OutOfMemoryError (GPU).
    """

    def __init__(self, chunks: Chunks, *, rows: int, columns: int) -> None:
        self._chunks, self._wide = chunks, is_wide(rows, columns)
        self._sample = list[Tensor]()
        sampling_chunks = self._sampling_chunks(math.ceil(rows / SAMPLE_ROWS))
        self._gram_matrix = SymmetricMatrix(gram(sampling_chunks, rows, columns, centre=True))
        squares_n = np.maximum(self._gram_matrix.eigenvalues_V, 0.0)
        self._sigma_n = np.sqrt(squares_n)
        self.count = int(np.count_nonzero(squares_n > len(squares_n) * FLOAT64_EPS * squares_n[0]))
        """Number of singular values above rounding errors."""
        self._tail_squares_n = np.append(np.cumsum(squares_n[::-1])[::-1], 0.0)
        self._vectors_VR: Tensor | None = None

    def sample(self) -> Tensor:
        """Return at least 512 evenly spaced rows of the matrix, or all if there are fewer."""
        return torch.cat(self._sample)

    def rank_for_residual(self, squares: float) -> int:
        """Return the smallest rank whose omitted squares sigma^2 sum to at most `squares`."""
        return min(self.count, int(np.argmax(self._tail_squares_n <= squares)))

    def leading(self, rank: int) -> Tensor:
        """Return the first `rank` singular vectors or more, V x R."""
        vectors_VR, is_small = self._vectors_VR, 2 * rank < self.count
        if vectors_VR is None or vectors_VR.shape[1] < (rank if is_small else self.count):
            # Compute extra directions for the next call.
            vectors_VR = self._vectors_VR = self._compute(
                rank + rank // 4 if is_small else self.count
            )
        return vectors_VR

    def _compute(self, count: int) -> Tensor:
        vectors_nR = self._gram_matrix.leading(count)
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

    def _sampling_chunks(self, stride: int) -> Iterator[Tensor]:
        row = 0
        for chunk_NV in finite(self._chunks()):
            self._sample.append(chunk_NV[-row % stride :: stride].clone())
            row += len(chunk_NV)
            yield chunk_NV
