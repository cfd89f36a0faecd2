"""Samples as n, mean and deviation; their t-tests; Holm's correction."""

from __future__ import annotations

import math
import statistics
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from orchestrator.analysis.statistics.estimates import Estimate, Interval, Names, Statistic
from orchestrator.words import quoted, too_few

FEWEST = 5
"""Minimum number of values per group for a bootstrap or a power analysis; fewer make both
overconfident."""


@dataclass(frozen=True, kw_only=True)
class SampleSummary:
    """Size, mean and standard deviation of a sample."""

    n: int
    mean: float | None
    sd: float | None
    """Sample standard deviation (ddof 1); None for fewer than 2 values."""

    def estimate(self) -> Estimate:
        """Return the mean with its standard error; needs at least two values."""
        assert self.mean is not None and self.sd is not None
        return Estimate(value=self.mean, error=self.sd / math.sqrt(self.n), df=self.n - 1)


def summarise_sample(values: ArrayLike) -> SampleSummary:
    """Return n, mean and standard deviation (ddof 1) of a sequence, which may be empty.

    Raises ValueError if a number is not finite.
    """
    values_n = np.asarray(values, dtype=np.float64)
    if values_n.ndim != 1 or not np.isfinite(values_n).all():
        raise ValueError(
            f"a sample needs a sequence of finite numbers, got {values!r}. "
            f"Leave out trials without a value."
        )
    # Exact sums: rounding in numpy's mean can give equal numbers a spread.
    numbers, n = values_n.tolist(), len(values_n)
    return SampleSummary(
        n=n,
        mean=statistics.mean(numbers) if n else None,
        sd=statistics.stdev(numbers) if n > 1 else None,
    )


def mean_interval(sample: SampleSummary) -> Interval | None:
    """Return the mean's 95% interval by Student's t; None for fewer than two values."""
    return sample.estimate().interval() if sample.n > 1 else None


def difference_of_means(a: SampleSummary, b: SampleSummary) -> float | None:
    """Return mean of a minus mean of b; None if either has no values."""
    return None if a.mean is None or b.mean is None else a.mean - b.mean


def student_difference(a: SampleSummary, b: SampleSummary) -> tuple[Estimate, float]:
    """Return the difference of means (a minus b) for Student's test, and the pooled deviation.

    Call it only for samples without an `obstacle`.
    """
    mean_a, mean_b, df = a.estimate(), b.estimate(), a.n + b.n - 2
    assert a.sd is not None and b.sd is not None
    sd = math.hypot(a.sd * math.sqrt((a.n - 1) / df), b.sd * math.sqrt((b.n - 1) / df))
    error = sd * math.sqrt(1 / a.n + 1 / b.n)
    return Estimate(value=mean_a.value - mean_b.value, error=error, df=df), sd


def welch_difference(a: SampleSummary, b: SampleSummary) -> Estimate:
    """Return the difference of means (a minus b), with Welch-Satterthwaite degrees of freedom.

    Call it only for samples without an `obstacle`.
    """
    mean_a, mean_b = a.estimate(), b.estimate()
    error = math.hypot(mean_a.error, mean_b.error)
    # Use shares of the variance, because fourth powers of the errors under- and overflow early.
    share_a, share_b = (mean_a.error / error) ** 2, (mean_b.error / error) ** 2
    df = 1 / (share_a**2 / mean_a.df + share_b**2 / mean_b.df)
    return Estimate(value=mean_a.value - mean_b.value, error=error, df=df)


def obstacle(a: SampleSummary, b: SampleSummary, *, names: Names, fewest: int = 2) -> str:
    """Return why two samples cannot be compared: too few values or no spread; "" if they can."""
    count, name = min((a.n, quoted(names[0])), (b.n, quoted(names[1])))
    if missing := too_few(fewest, f"values of {name}", count):
        return missing
    if max(a.sd or 0.0, b.sd or 0.0) < sys.float_info.min:
        return f"neither {names[0]} nor {names[1]} varies, so there is no spread for a test"
    return ""


def t_test(
    a: SampleSummary, b: SampleSummary, *, equal_variances: bool = False, names: Names = ("a", "b")
) -> Statistic:
    """Return Welch's (1947) unpaired t-test of a minus b; Student's (1908) for equal variances."""
    if missing := obstacle(a, b, names=names):
        return Statistic(value=difference_of_means(a, b), missing=missing)
    return (student_difference(a, b)[0] if equal_variances else welch_difference(a, b)).test()


def holm(p_values: pd.Series[Any]) -> pd.Series[Any]:
    """Return the p-values of one family adjusted by Holm (1979), with the given index.

    None stays None and is not part of the family.
    """
    family = p_values.dropna().astype(float).sort_values()
    adjusted = (family * np.arange(len(family), 0, -1)).clip(upper=1.0).cummax()
    adjusted = adjusted.reindex(p_values.index).astype(object)
    return adjusted.where(adjusted.notna(), None)
