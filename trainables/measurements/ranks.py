"""Ranks of a matrix from its singular values, and of integer matrices.

`sigma` holds the singular values: float64, descending, not negative. A zero matrix has rank 0.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trainables.errors import UserError
from trainables.measurements.spectrum import FLOAT64_EPS, Method, Spectrum, resolution
from trainables.pulse import PULSE

FLOAT32_EPS = float(np.finfo(np.float32).eps)
EFFECTIVE_RANK_EPSILONS = ("1e-3", "1e-4", "1e-5")
RANKS = (
    "press_rank",
    *(f"effective_rank_{epsilon}" for epsilon in EFFECTIVE_RANK_EPSILONS),
    "entropy_rank",
    "stable_rank",
)
PRIME = 2**31 - 1
"""Prime modulus. A product of two remainders fits in an int64."""


def press_tolerance(
    sigma: NDArray[np.float64], *, rows: int, columns: int, eps: float = FLOAT32_EPS
) -> float:
    """Return the Press tolerance, 0.5 sqrt(rows + columns + 1) sigma_max eps.

    It estimates the rounding error of a zero singular value (Press et al. 2007, Numerical Recipes,
    section 2.6). Published ranks use float32's eps.
    """
    return _press_ratio(rows, columns, eps) * float(sigma[0])


def press_rank(spectrum: Spectrum, *, eps: float = FLOAT32_EPS) -> int:
    """Return the number of singular values above the Press tolerance.

    Raises UserError if the spectrum's method cannot resolve the tolerance.
    """
    require_resolved(spectrum.method, rows=spectrum.rows, columns=spectrum.columns, eps=eps)
    sigma = spectrum.singular_values
    tolerance = press_tolerance(sigma, rows=spectrum.rows, columns=spectrum.columns, eps=eps)
    return int(np.count_nonzero(sigma > tolerance))


def require_resolved(method: Method, *, rows: int, columns: int, eps: float) -> None:
    """Raise UserError if `method` cannot distinguish the Press tolerance from zero."""
    ratio = _press_ratio(rows, columns, eps)
    limit = resolution(method, rows=rows, columns=columns)
    # The resolution of QR is the tolerance of float64, so equality must pass regardless of the last
    # bit.
    if ratio < limit * (1 - 1e-9):
        fix = "the streamed QR (--method qr)"
        if method == "qr":
            fix = f"an eps of {FLOAT64_EPS:.3g} or more"
        raise UserError(
            f"The rank counts singular values down to {ratio:.3g} of the largest, but the method "
            f"{method} resolves only {limit:.3g} for {rows} x {columns}. Use {fix}."
        )


def effective_rank(sigma: NDArray[np.float64], epsilon: float) -> int:
    """Return the smallest k with sum_{i<=k} sigma_i^2 >= (1 - epsilon) sum sigma_i^2.

    `epsilon` is in [0, 1).
    """
    if sigma[0] == 0:
        return 0
    energy = np.cumsum((sigma / sigma[0]) ** 2)
    return int(np.searchsorted(energy, (1 - epsilon) * energy[-1])) + 1


def entropy_rank(sigma: NDArray[np.float64]) -> float:
    """Return exp(-sum p_i ln p_i) with p_i = sigma_i / sum sigma.

    Source: Roy and Vetterli (2007), EUSIPCO.
    """
    positive_sigma = sigma[sigma > 0]
    if len(positive_sigma) == 0:
        return 0.0
    shares = positive_sigma / positive_sigma[0]
    shares /= shares.sum()
    # A share can still underflow to zero; its p ln p is zero.
    shares = shares[shares > 0]
    return float(np.exp(-np.sum(shares * np.log(shares))))


def stable_rank(sigma: NDArray[np.float64]) -> float:
    """Return sum sigma_i^2 / sigma_max^2 (Rudelson and Vershynin 2007)."""
    return float(np.sum((sigma / sigma[0]) ** 2)) if sigma[0] > 0 else 0.0


def rank_report(spectrum: Spectrum, *, eps: float = FLOAT32_EPS) -> dict[str, int | float | str]:
    """Return all ranks of a spectrum by metric name.

    `press_tolerance` and `sigma_max` have the matrix's units (nats for log P). Raises UserError if
    the spectrum's method cannot resolve the tolerance.
    """
    sigma = spectrum.singular_values
    shape = {"rows": spectrum.rows, "columns": spectrum.columns}
    return {
        "press_rank": press_rank(spectrum, eps=eps),
        "press_eps": eps,
        "press_tolerance": press_tolerance(sigma, eps=eps, **shape),
        **{
            f"effective_rank_{name}": effective_rank(sigma, float(name))
            for name in EFFECTIVE_RANK_EPSILONS
        },
        "entropy_rank": entropy_rank(sigma),
        "stable_rank": stable_rank(sigma),
        "sigma_max": float(sigma[0]),
        "rank_rows": spectrum.rows,
        "rank_columns": spectrum.columns,
        "rank_method": spectrum.method,
    }


def rank_modulo_prime(matrix_NR: NDArray[np.int64]) -> int:
    """Return the rank of an N x R integer matrix modulo 2^31 - 1, by elimination.

    This rank never exceeds the rank over the rationals, so a result of min(N, R) is exact.
    """
    block = (matrix_NR if len(matrix_NR) <= matrix_NR.shape[1] else matrix_NR.T) % PRIME
    rank = 0
    while block.size:
        PULSE.touch()
        row, block = block[0], block[1:]
        columns = np.flatnonzero(row)
        if not len(columns):
            continue
        rank += 1
        pivot = columns[0]
        multiples = block[:, pivot] * pow(int(row[pivot]), -1, PRIME) % PRIME
        block = np.delete(block - multiples[:, None] * row, pivot, axis=1) % PRIME
    return rank


def _press_ratio(rows: int, columns: int, eps: float) -> float:
    return 0.5 * math.sqrt(rows + columns + 1) * eps
