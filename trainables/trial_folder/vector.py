"""Singular values as a .npy file: one row of float64 numbers."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from trainables.trial_folder.files import (
    DamagedFileError,
    read_file,
    sha256,
    unreadable_error,
    write_file,
)


def write_vector(path: Path, values: NDArray[float64]) -> str:
    """Write the values atomically; return the SHA-256 of the file."""
    content = _npy(values)
    write_file(path, content)
    return sha256(content)


def read_vector(path: Path, checksum: str | None) -> NDArray[float64]:
    """Return the values that `write_vector` wrote.

    Raises DamagedFileError unless the file exists, matches `checksum` and is one row of finite
    float64 values; UnreadableFileError if it cannot be read.
    """
    try:
        content = read_file(path)
    except FileNotFoundError as error:
        raise DamagedFileError(f"{path} is missing") from error
    except OSError as error:
        raise unreadable_error(path, error) from error
    if sha256(content) != checksum:
        raise DamagedFileError(f"{path} does not match its checksum")
    # Writing the values again must give the same file, so its header is never parsed.
    values = np.frombuffer(content[HEADER : len(content) // 8 * 8]).copy()
    if _npy(values) != content:
        raise DamagedFileError(f"{path} is not a vector of float64 values")
    if not np.isfinite(values).all():
        raise DamagedFileError(f"{path} has a NaN or an infinity")
    return values


def _npy(values: NDArray[float64]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    return buffer.getvalue()


HEADER = len(_npy(np.empty(0)))
