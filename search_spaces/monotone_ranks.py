"""Exact ranks of f(A) for a random integer matrix A of rank d (the talk on Ganea et al. 2019).

The talk asks for an f that is unbounded, continuous, non-linear and monotone. According to its
theorem, these properties do not limit the rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from math import comb
from typing import Any

ROWS, WIDTHS = 100, (1, 2, 5, 10)
LARGEST_ENTRY = 10**6
"""Bound of the random entries of the two factors of A."""
STEP = 10**11
"""About a fifth of the standard deviation of A's entries."""
INTERVALS = 100


def factor_product(rows: int, width: int) -> Any:
    """Return a random square integer matrix of rank at most `width`, int64."""
    import numpy as np

    draw = np.random.default_rng(width).integers
    left, right = (
        draw(-LARGEST_ENTRY, LARGEST_ENTRY + 1, shape) for shape in ((rows, width), (width, rows))
    )
    return left @ right


def knots_and_slopes() -> tuple[list[int], list[int]]:
    """Return ascending random knots and the positive random slopes on both sides of each."""
    import numpy as np

    draw = np.random.default_rng(0).integers
    knots = sorted(draw(-10 * STEP, 10 * STEP, INTERVALS - 1).tolist())
    return knots, draw(1, 11, INTERVALS).tolist()


def _piecewise(x: Any) -> Any:
    knots, slopes = knots_and_slopes()
    bends = zip(knots, pairwise(slopes), strict=True)
    return slopes[0] * x + sum((right - left) * (x - knot).clip(0) for knot, (left, right) in bends)


def _power(x: Any, exponent: int) -> Any:
    from trainables.measurements import PRIME

    power = x = x % PRIME
    for _ in range(exponent - 1):
        power = power * x % PRIME
    return power


FUNCTIONS: tuple[tuple[str, str, Callable[[Any], Any], Callable[[int], int]], ...] = (
    ("x", "non-linear", lambda x: x, lambda d: d),
    ("2x + 1", "non-linear", lambda x: 2 * x + 1, lambda d: d + 1),
    ("x³", "", lambda x: _power(x, 3), lambda d: comb(d + 2, 3)),
    ("(x + 1)³", "", lambda x: _power(x + 1, 3), lambda d: comb(d + 3, 3)),
    ("PL(x; 0, 2)", "", lambda x: x + x * (x <= 0), lambda d: ROWS if d > 1 else 2),
    ("PLIF", "", _piecewise, lambda _: ROWS),
    ("(x + 1)²", "monotone", lambda x: _power(x + 1, 2), lambda d: comb(d + 2, 2)),
    ("|x|", "monotone", abs, lambda d: ROWS if d > 1 else 1),
    ("limited x", "unbounded", lambda x: x.clip(-STEP, STEP), lambda _: ROWS),
    ("rounded x", "continuous", lambda x: x // STEP * STEP, lambda _: ROWS),
)
"""Name, missing properties, function, and largest rank at rank d of A."""


def ranks_of_functions(results: Any) -> list[Any]:
    """Compute ranks of f(A) with exact integers, for random integer matrices A of rank d.

    f is applied to every entry. The table has the rank modulo the prime 2^31 - 1, and the largest
    rank that f(A) can have. The rank itself is at least that modulo the prime, so it is exact if
    the two are equal. x^p gives at most C(d + p - 1, p) by its monomials, and any polynomial of
    degree p at most C(d + p, p). The normaliser of a softmax adds at most 1 to the rank of f(A).
    PLIF is piecewise linear with random positive integer slopes on 100 intervals. Limited x stays
    within 10^11, and rounded x is rounded down to a multiple of 10^11.
    """
    ranks = {(name, width): rank for name, width, rank in _ranks()}
    table = type(results)(
        {"f": name, "missing properties": missing or "none"}
        | {f"rank, d = {d}": f"{ranks[name, d]} of {min(ROWS, bound(d))}" for d in WIDTHS}
        for name, missing, _, bound in FUNCTIONS
    )
    width = WIDTHS[-2]
    kinds: dict[str, list[str]] = {}
    for name, *_ in FUNCTIONS:
        rank = ranks[name, width]
        kind = f"from {width + 2} to {ROWS - 1}" if rank > width + 1 else f"at most {width + 1}"
        kinds.setdefault(f"{ROWS}, its size," if rank == ROWS else kind, []).append(name)
    text = "; ".join(f"{kind} for {', '.join(names)}" for kind, names in kinds.items())
    return [f"If A has rank {width}, the rank of f(A) is {text}.", table]


def _ranks() -> Iterator[tuple[str, int, int]]:
    from trainables.measurements import rank_modulo_prime

    for width in WIDTHS:
        product = factor_product(ROWS, width)
        for name, _, function, _ in FUNCTIONS:
            yield name, width, rank_modulo_prime(function(product))
