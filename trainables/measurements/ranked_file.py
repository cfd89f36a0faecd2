"""Ranks of a .npy file, or of the head of an open checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from trainables.errors import UserError
from trainables.measurements.head import bounds_of_head, find_head
from trainables.measurements.ranks import FLOAT32_EPS, rank_report, require_resolved
from trainables.measurements.spectrum import (
    FLOAT64_EPS,
    Method,
    Spectrum,
    log_p_spectrum,
    matrix_spectrum,
    resolution,
)
from trainables.measurements.weights_file import DTYPE_NAMES, is_weights, open_checkpoint

EpsName = Literal["float32", "float64"]
EPS: dict[EpsName, float] = {"float32": FLOAT32_EPS, "float64": FLOAT64_EPS}


@dataclass(frozen=True, kw_only=True)
class RankedFile:
    """Ranks of a file's matrix."""

    report: dict[str, Any]
    spectrum: Spectrum
    notes: tuple[str, ...] = ()


def rank_file(
    path: Path,
    *,
    tensor: str | None = None,
    context_norm: float | None = None,
    method: Method = "gram",
    eps: EpsName = "float32",
) -> RankedFile:
    """Return the rank report (see `rank_report`) of a .npy matrix or of a checkpoint's head.

    A head's report adds `tensor`, `dtype`, `sigma_min`, `log_p_rank_bound` and
    `kl_rank_bound_NATS`: a head rank that loses at most NATS nats at every context. The bound
    assumes that context vectors have at most the norm `context_norm`, by default that of the final
    norm layer's output. `tensor` names the head.

    Raises UserError for another kind of file, a missing tensor, and an eps below the method's
    resolution. A matrix must not be empty or too large, and all its values must be finite.
    """
    if not is_weights(path):
        if tensor is not None or context_norm is not None:
            raise UserError(
                f"--tensor, --context-norm: {path} is not a safetensors file. "
                "Leave these options out."
            )
        matrix_NV = _open_matrix(path)
        rows, columns = matrix_NV.shape
        require_resolved(method, rows=rows, columns=columns, eps=EPS[eps])
        spectrum = matrix_spectrum(matrix_NV, method=method)
        return RankedFile(report=dict(rank_report(spectrum, eps=EPS[eps])), spectrum=spectrum)
    checkpoint = open_checkpoint(path)
    head = find_head(checkpoint, tensor)
    rows, columns = head.tensor.shape
    require_resolved(method, rows=rows, columns=columns, eps=EPS[eps])
    spectrum = log_p_spectrum(head.tensor.blocks(), rows=rows, columns=columns, method=method)
    bounds, notes = bounds_of_head(checkpoint, head, context_norm)
    sigma_R, limit = spectrum.singular_values, resolution(method, rows=rows, columns=columns)
    if rows < columns:
        notes.append("The head has fewer rows (words) than columns: it may be transposed.")
    if sigma_R[-1] < limit * sigma_R[0]:
        fix = "Use --method qr" if method == "gram" else "Treat it as zero"
        notes.append(
            f"sigma_min is below the method's resolution, {limit:.2g} of sigma_max. {fix}."
        )
    return RankedFile(
        report={
            "tensor": head.tensor.name,
            "dtype": DTYPE_NAMES[head.tensor.dtype],
            **rank_report(spectrum, eps=EPS[eps]),
            "sigma_min": float(sigma_R[-1]),
            **bounds,
        },
        spectrum=spectrum,
        notes=(f"The head is {head.tensor}: {head.reason}.", *notes),
    )


def _open_matrix(path: Path) -> NDArray[np.floating[Any]]:
    try:
        matrix = np.lib.format.open_memmap(path, mode="r")
    except OSError as error:
        raise UserError(f"{path}: cannot be opened ({error.strerror}). Check the path.") from error
    except Exception as error:  # numpy and Python's parser raise anything for a damaged header
        raise UserError(
            f"{path}: not a complete .npy file of floats. Write it with numpy.save(path, matrix)."
        ) from error
    dtype = matrix.dtype
    if dtype.kind != "f" or dtype.itemsize > 8 or matrix.ndim != 2 or not matrix.size:
        raise UserError(
            f"{path}: {dtype} of shape {matrix.shape} is not a matrix (contexts, vocabulary) of "
            "float16, float32 or float64. Save matrix.astype('float32')."
        )
    return matrix
