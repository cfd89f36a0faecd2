"""Singular values as a file: one row of float64 numbers in the format .npy."""

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
    unreadable,
    write_file,
)


def write_vector(path: Path, values: NDArray[float64]) -> str:
    """Write them, whole or not at all; returns the SHA-256 of the file."""
    content = _npy(values)
    write_file(path, content)
    return sha256(content)


def read_vector(path: Path, checksum: str | None) -> NDArray[float64]:
    """What `write_vector` wrote. Raises DamagedFileError for a missing file, another one than that
    with this checksum, or anything but finite float64 values in one row; UnreadableFileError if
    this user may not read it or the disk fails."""
    try:
        content = read_file(path)
    except FileNotFoundError as error:
        raise DamagedFileError(f"{path} is missing") from error
    except OSError as error:
        raise unreadable(path, error) from error
    if sha256(content) != checksum:
        raise DamagedFileError(f"{path} is not what was written, by its checksum")
    # Written again, the values give the same file: its header is never parsed.
    values = np.frombuffer(content[HEADER : len(content) // 8 * 8]).copy()
    if _npy(values) != content:
        raise DamagedFileError(f"{path} is no vector of float64 values")
    if not np.isfinite(values).all():
        raise DamagedFileError(f"{path} holds values that are not finite")
    return values


def _npy(values: NDArray[float64]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    return buffer.getvalue()


HEADER = len(_npy(np.empty(0)))
"""Bytes; the same for every vector."""
