"""Measurements taken later, as files: read back as written, or not at all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from trainables.trial_folder.measurement_files import read_later, write_later

VALUES = np.array([3.0, 1.0])


def test_what_was_written_is_read(tmp_path: Path) -> None:
    write_later(tmp_path, "a", "spectrum@2", ({"press_rank": 2}, VALUES))
    found = read_later(tmp_path, "a", "spectrum@2")
    assert found is not None
    metrics, spectrum = found
    assert metrics == {"press_rank": 2}
    assert spectrum is not None and spectrum.tolist() == VALUES.tolist()
    assert read_later(tmp_path, "b", "spectrum@2") is None


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no archive", b"\x93NUMPY\x01\x00cut", None])
def test_a_damaged_spectrum_is_as_good_as_none(tmp_path: Path, content: bytes | None) -> None:
    write_later(tmp_path, "a", "spectrum@2", ({"press_rank": 2}, VALUES))
    [path] = tmp_path.glob("*.npy")
    if content is None:
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes(content)
    assert read_later(tmp_path, "a", "spectrum@2") is None


@pytest.mark.parametrize("values", [np.array([[1.0]]), np.array([1], dtype=np.int64), np.array([np.nan])])
def test_an_array_of_another_kind_is_no_spectrum(tmp_path: Path, values: np.ndarray) -> None:
    write_later(tmp_path, "a", "spectrum@2", ({"press_rank": 2}, values))
    assert read_later(tmp_path, "a", "spectrum@2") is None
