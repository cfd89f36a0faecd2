"""The ranks of any matrix saved as a .npy file, read through a memory map and never loaded as a
whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from trainables.errors import UserError
from trainables.measurements.ranks import FLOAT32_EPS, rank_report, require_resolved
from trainables.measurements.spectrum import (
    FLOAT64_EPS,
    Method,
    Spectrum,
    is_float,
    matrix_spectrum,
)

EpsName = Literal["float32", "float64"]
EPS: dict[EpsName, float] = {"float32": FLOAT32_EPS, "float64": FLOAT64_EPS}


def rank_of_file(
    path: Path, *, method: Method = "gram", eps: EpsName = "float32"
) -> dict[str, int | float | str]:
    """The rank report (see `rank_report`) of the 2-D float16, float32 or float64 matrix in a .npy
    file.

    Works on the narrower side, so that memory is bounded by the square of min(rows, columns) in
    float64.

    Raises:
        UserError: no such file or not a .npy file; not a 2-D matrix of floats; no rows or columns;
        a NaN or infinity
            (with its row); a matrix too large for the memory; an eps finer than the method
            resolves.
    """
    return rank_report(spectrum_of_file(path, method=method, eps=eps), eps=EPS[eps])


def spectrum_of_file(path: Path, *, method: Method = "gram", eps: EpsName = "float32") -> Spectrum:
    """The singular values of that matrix; raises as `rank_of_file` does."""
    matrix_NV = open_matrix(path)
    rows, columns = matrix_NV.shape
    require_resolved(method, rows=rows, columns=columns, eps=EPS[eps])
    return matrix_spectrum(matrix_NV, method=method)


def open_matrix(path: Path) -> NDArray[np.floating[Any]]:
    """A read-only memory map of the matrix in a .npy file; raises UserError as `rank_of_file` does,
    but for NaN."""
    try:
        matrix = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise UserError(
            f"A matrix is read from a .npy file, and {path} cannot be opened ({error.strerror}): "
            f"check the path."
        ) from error
    except (
        Exception
    ) as error:  # of a damaged header numpy, and Python's parser, make errors of any kind
        raise UserError(
            f"A matrix is read from a whole .npy file of floats, and {path} is not one: "
            "write it with numpy.save(path, matrix)."
        ) from error
    if not isinstance(matrix, np.ndarray):
        matrix.close()
        raise UserError(
            f"A matrix is read from a .npy file, and {path} is an archive: save the one matrix by "
            f"itself."
        )
    if not is_float(matrix.dtype):
        raise UserError(
            f"The matrix must be float16, float32 or float64, and {path} holds {matrix.dtype}: "
            "convert it with matrix.astype('float32') and save it again."
        )
    if matrix.ndim != 2 or matrix.size == 0:
        raise UserError(
            f"The matrix must have two dimensions and at least one value, and {path} holds shape "
            f"{matrix.shape}: "
            "reshape it to (contexts, vocabulary) and save it again."
        )
    return matrix
