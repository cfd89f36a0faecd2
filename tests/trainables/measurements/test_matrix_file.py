"""`rank FILE.npy`: any float matrix, and a clear sentence for everything else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from trainables.errors import UserError
from trainables.measurements.matrix_file import rank_of_file
from trainables.measurements.spectrum import Method


def saved(folder: Path, matrix: NDArray[Any]) -> Path:
    path = folder / "matrix.npy"
    np.save(path, matrix)
    return path


def low_rank(rows: int, columns: int, rank: int) -> NDArray[np.float64]:
    """Small integers, so that even float16 holds the matrix and its rank exactly."""
    random = np.random.default_rng(0)
    product = random.integers(-4, 5, (rows, rank)) @ random.integers(-4, 5, (rank, columns))
    return product.astype(np.float64)


@pytest.mark.parametrize("method", ["gram", "qr"])
@pytest.mark.parametrize("dtype", ["<f2", ">f2", "<f4", ">f4", "<f8", ">f8"])
@pytest.mark.parametrize("shape", [(60, 20), (20, 60)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_known_rank(
    tmp_path: Path, method: Method, dtype: str, shape: tuple[int, int], order: Any
) -> None:
    matrix = np.asarray(low_rank(*shape, 5), dtype=dtype, order=order)
    report = rank_of_file(saved(tmp_path, matrix), method=method)
    assert report["press_rank"] == 5
    assert (report["rank_rows"], report["rank_columns"], report["rank_method"]) == (*shape, method)
    assert report["sigma_max"] == pytest.approx(
        float(np.linalg.norm(matrix.astype(np.float64), 2)), rel=1e-12
    )


def test_a_value_between_the_two_tolerances(tmp_path: Path) -> None:
    path = saved(tmp_path, np.diag([1.0, 1.0, 1e-10]))
    assert rank_of_file(path, eps="float32")["press_rank"] == 2
    assert rank_of_file(path, eps="float64", method="qr")["press_rank"] == 3
    with pytest.raises(UserError, match="--method qr"):
        rank_of_file(path, eps="float64")


@pytest.mark.parametrize("shape", [(50, 8), (8, 50)])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_the_row_with_a_nan_is_named(tmp_path: Path, shape: tuple[int, int], bad: float) -> None:
    matrix = np.ones(shape)
    matrix[6, 3] = bad
    with pytest.raises(UserError, match="row 6 "):
        rank_of_file(saved(tmp_path, matrix))


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones((3, 3), dtype=np.int64), "int64"),
        (np.ones((3, 3), dtype=bool), "bool"),
        (np.ones((3, 3), dtype=np.complex128), "complex128"),
        (np.ones((3, 3), dtype=np.longdouble), "float16, float32 or float64"),
        (np.ones(3), r"shape \(3,\)"),
        (np.ones((3, 3, 3)), r"shape \(3, 3, 3\)"),
        (np.float64(1), r"shape \(\)"),
        (np.ones((0, 3)), r"shape \(0, 3\)"),
        (np.ones((3, 0)), r"shape \(3, 0\)"),
        (np.array([[None]]), r"numpy\.save"),
    ],
)
def test_arrays_without_a_rank(tmp_path: Path, matrix: NDArray[Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        rank_of_file(saved(tmp_path, matrix))


def test_what_is_no_whole_npy_file(tmp_path: Path) -> None:
    path, archive = saved(tmp_path, np.ones((100, 10))), tmp_path / "matrices.npz"
    for content in (b"", b"not a matrix at all", path.read_bytes()[:10], path.read_bytes()[:1000]):
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"whole \.npy file.*numpy\.save"):
            rank_of_file(path)
    np.savez(archive, np.ones((3, 3)))
    for other, message in (
        (archive, "archive"),
        (tmp_path, "directory"),
        (tmp_path / "none.npy", "No such file"),
    ):
        with pytest.raises(UserError, match=message):
            rank_of_file(other)
