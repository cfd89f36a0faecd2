"""Vectors of float64 in files: written whole or not at all, and nothing else is ever read as one."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trainables.trial_folder.files import write_file

NPY_MAGIC = b"\x93NUMPY"


def write_vector(path: Path, values: NDArray[np.float64]) -> None:
    """Write them as a .npy file, as `trainables.trial_folder.files.write_file` does."""
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    write_file(path, buffer.getvalue())


def read_vector(path: Path) -> NDArray[np.float64]:
    """Raises OSError where it cannot be read, ValueError for anything but a vector of finite float64 values."""
    content = path.read_bytes()
    # numpy would take other damaged files for archives.
    if not content.startswith(NPY_MAGIC):
        raise ValueError(f"{path} is no complete array")
    try:
        values = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} is no complete array") from error
    if values.ndim != 1 or values.dtype != np.float64:
        raise ValueError(f"{path} is no vector of float64 values")
    if not np.isfinite(values).all():
        raise ValueError(f"{path} holds values that are not finite")
    vector: NDArray[np.float64] = values
    return vector
