"""Singular values as a file: one row of float64 numbers in the format .npy."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from trainables.trial_folder.files import DamagedFileError, read_file, sha256, write_file


def write_vector(path: Path, values: NDArray[float64]) -> str:
    """Write them, whole or not at all; returns the SHA-256 of the file."""
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    write_file(path, buffer.getvalue())
    return sha256(buffer.getvalue())


def read_vector(path: Path, checksum: str | None) -> NDArray[float64]:
    """What `write_vector` wrote. Raises OSError if it cannot be read, DamagedFileError for another
    file than the one with this checksum, or anything but finite float64 values in one row."""
    content = read_file(path)
    if sha256(content) != checksum:
        raise DamagedFileError(f"{path} is not what was written, by its checksum")
    # A vector's header follows from its length: none is ever parsed.
    header = _header(0)
    count = (len(content) - len(header)) // 8
    header = _header(max(count, 0))
    if not content.startswith(header) or len(content) != len(header) + 8 * count:
        raise DamagedFileError(f"{path} is no vector of float64 values")
    values: NDArray[float64] = np.frombuffer(content, "<f8", offset=len(header)).astype(float64)
    if not np.isfinite(values).all():
        raise DamagedFileError(f"{path} holds values that are not finite")
    return values


def _header(count: int) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": "<f8", "fortran_order": False, "shape": (count,)}
    )
    return buffer.getvalue()
