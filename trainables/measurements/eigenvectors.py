"""Leading eigenvectors of a large symmetric matrix, computed on demand.

On a CPU, LAPACK reduces the matrix to a tridiagonal one, MRRR finds the requested eigenvectors, and
the reduction's reflectors transform them back. A GPU computes all eigenvectors.

Shapes: V rows and columns, k eigenvectors, M = V - 1.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal, lapack
from torch import Tensor

from trainables.device import on_gpu
from trainables.pulse import PULSE, SLOWEST_FLOPS, SLOWEST_GPU_FLOPS

BLOCK = 64


class SymmetricMatrix:
    """Eigenpairs of a symmetric float64 matrix, which is overwritten.

    On a CPU, the matrix must be in Fortran order; only its lower triangle is read.
    """

    def __init__(self, matrix_VV: Tensor) -> None:
        self._vectors_VV: Tensor | None = None
        if on_gpu(matrix_VV):
            PULSE.touch(quiet_s=9 * len(matrix_VV) ** 3 / SLOWEST_GPU_FLOPS)
            values_V, vectors_VV = torch.linalg.eigh(matrix_VV)
            self.eigenvalues_V: NDArray[np.float64] = values_V.flip(0).cpu().numpy()
            self._vectors_VV = vectors_VV.flip(1)
            return
        size = len(matrix_VV)
        PULSE.touch(quiet_s=4 / 3 * size**3 / SLOWEST_FLOPS)
        reduced_VV, self._diagonal_V, self._off_diagonal_V, tau_V, info = lapack.dsytrd(
            matrix_VV.numpy(), lower=1, overwrite_a=1, lwork=BLOCK * size
        )
        assert info == 0, f"dsytrd returned {info}"
        self._reflectors_VV, self._tau_V = torch.from_numpy(reduced_VV), torch.from_numpy(tau_V)
        self.eigenvalues_V = eigh_tridiagonal(
            self._diagonal_V,
            self._off_diagonal_V,
            eigvals_only=True,
            lapack_driver="sterf",
            check_finite=False,
        )[::-1].copy()
        """Eigenvalues in descending order."""

    def leading(self, count: int) -> Tensor:
        """Return orthonormal eigenvectors of the `count` largest eigenvalues, V x k, descending."""
        if self._vectors_VV is not None:
            return self._vectors_VV[:, :count]
        size = len(self.eigenvalues_V)
        if count == 0:
            return torch.empty(size, 0, dtype=torch.float64)
        PULSE.touch(quiet_s=8 * size**2 * count / SLOWEST_FLOPS)
        _, vectors_Vk = eigh_tridiagonal(
            self._diagonal_V,
            self._off_diagonal_V,
            select="i",
            select_range=(size - count, size - 1),
            lapack_driver="stemr",
            check_finite=False,
        )
        result_Vk = torch.from_numpy(vectors_Vk).flip(1).contiguous()
        # Reflector j begins below the diagonal of column j.
        reflectors_MM = self._reflectors_VV[1:, :-1]
        result_Vk[1:] = torch.ormqr(reflectors_MM, self._tau_V, result_Vk[1:])
        return result_Vk
