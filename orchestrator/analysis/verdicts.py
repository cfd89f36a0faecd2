"""Verdicts on two settings by pairs of equal seeds, and the seeds that a verdict needs.

A fixed number of pairs is judged by Student's paired t-test and by two one-sided t-tests against a
margin. Such a test must not be repeated while pairs are added. The sequential verdict may be: it
uses a confidence sequence, which holds for all numbers of pairs at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from orchestrator.analysis.contrasts import compare
from orchestrator.analysis.statistics.estimates import POWER, SIGNIFICANCE, Array, Interval
from orchestrator.analysis.statistics.samples import FEWEST

Outcome = Literal["a_better", "b_better", "equivalent", "no_difference_shown", "too_few_seeds"]
MOST_PAIRS = 1000
PRIOR_SD = 1.0
"""Standard deviation of the mixture over effect sizes (mean / standard deviation of the pairs)."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Verdict on the pairs (a, b); differences are a minus b."""

    verdict: Outcome
    pairs: int
    mean_a: float | None
    mean_b: float | None
    difference: float | None
    interval: Interval | None
    """95% interval of the difference; valid at any number of pairs if the verdict is sequential."""
    p: float | None
    detectable_difference: float | None
    """True difference that the t-test finds with 80% power; None if sequential."""
    equal_within: float | None
    """Smallest margin within which the two are equivalent."""
    pairs_needed: int | None
    """Pairs, these included, that would give a sequential verdict with 80% power if the difference
    and its spread stay as they are. None if decided, unknown, or more than 1,000."""
    missing: str = ""
    """Why there is no test."""


def judge_pairs(
    pairs: ArrayLike, *, margin: float = 0.0, lower_is_better: bool = True, sequential: bool = False
) -> Verdict:
    """Return the verdict on pairs, shape N x 2. Raises ValueError if a number is not finite.

    Equivalent: the difference is within the margin (p < 0.05; it may still differ from zero).
    Better: the 95% interval excludes zero.
    """
    pairs_N2 = np.reshape(np.asarray(pairs, dtype=np.float64), (-1, 2))
    a_N, b_N = pairs_N2.T
    test = compare(a_N, b_N, pairs_N2, names=("A", "B"))
    n, sd, difference = test["pairs"], test["sd_difference"], test["difference"]
    interval = p = None
    within, detectable = test["equal_within"], test["detectable_difference"]
    if (p := test["difference_p"]) is not None:
        interval = Interval(test["difference_low"], test["difference_high"])
        if sequential:
            half = float(_sequential_t(np.array([n]))[0]) * sd / math.sqrt(n)
            interval = Interval(difference - half, difference + half)
            p = min(1.0, 1 / _evidence(n, test["difference_t"]))
            within, detectable = max(-interval.low, interval.high), None
    outcome: Outcome = "too_few_seeds" if n < FEWEST else "no_difference_shown"
    needed = None
    if interval is not None:
        if within < margin:
            outcome = "equivalent"
        elif 0 not in interval:
            outcome = "a_better" if (difference < 0) == lower_is_better else "b_better"
        else:
            needed = _pairs_needed(abs(difference), sd, margin)
    return Verdict(
        verdict=outcome,
        pairs=n,
        mean_a=test["mean_group"],
        mean_b=test["mean_baseline"],
        difference=difference,
        interval=interval,
        p=p,
        detectable_difference=detectable,
        equal_within=within,
        pairs_needed=needed,
        missing="" if interval else test["missing"],
    )


def _evidence(n: int, t: float) -> float:
    """Return the likelihood ratio of a t statistic: effects of N(0, PRIOR_SD^2) against none.

    The ratios of growing n are a martingale without an effect (Lai 1976; Hendriksen, de Heide and
    Gruenwald 2021), so by Ville's inequality any of them exceeds 1/p with probability at most p.
    """
    df, spread = n - 1, 1 + n * PRIOR_SD**2
    log_ratio = math.log1p(t * t / df) - math.log1p(t * t / (df * spread))
    return math.exp(min(700.0, (df + 1) / 2 * log_ratio - math.log(spread) / 2))


def _sequential_t(n: Array) -> Array:
    """Return the |t| at which `_evidence` is 20, by number of pairs; infinity if it never is."""
    df, spread = n - 1, 1 + n * PRIOR_SD**2
    ratio = np.exp((np.log(spread) / 2 - math.log(SIGNIFICANCE)) * 2 / (df + 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        squares = df * (ratio - 1) / (1 - ratio / spread)
    return np.asarray(np.sqrt(np.where(ratio < spread, squares, np.inf)))


def _pairs_needed(size: float, sd: float, margin: float) -> int | None:
    n = np.arange(FEWEST, MOST_PAIRS + 1, dtype=np.float64)
    error, t = sd / np.sqrt(n), _sequential_t(n)
    better = ndtr(size / error - t)
    equivalent = ndtr((margin - size) / error - t) + ndtr((margin + size) / error - t) - 1
    is_enough = np.maximum(better, equivalent) >= POWER
    return int(n[is_enough.argmax()]) if is_enough.any() else None
