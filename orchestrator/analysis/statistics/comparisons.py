"""The difference of two groups of values, one a seed: paired by seed if the groups share seeds,
else unpaired."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike

from orchestrator.analysis.statistics.correlation import correlate
from orchestrator.analysis.statistics.estimates import Names, Statistic
from orchestrator.analysis.statistics.samples import (
    FEWEST,
    SampleSummary,
    difference_of_means,
    obstacle,
    student_difference,
    summarise_sample,
    t_test,
    welch_difference,
)

FEWEST_PAIRS = 2
"""Pairs that a paired test needs."""


@dataclass(frozen=True, kw_only=True)
class GroupComparison:
    """Group a against group b; differences are a less b."""

    names: Names
    a: SampleSummary
    """All values, paired or not."""
    b: SampleSummary
    differences: SampleSummary
    """Of the pairs."""
    lower: int
    """Pairs in which a's value is the lower one."""
    correlation: Statistic
    """Pearson's r of a and b over the pairs: what the seed does to both."""
    test: Statistic
    """Student's t-test of the paired differences (1908), or Welch's unpaired one."""
    effect: Statistic
    """Hedges' g of the same test: paired in units of the standard deviation of the differences
    (g_z), unpaired in units of the standard deviation that both groups share."""
    detectable: Statistic
    """The smallest true difference that the test finds at 0.05 with 80% power, if the true
    deviations are those seen. It needs FEWEST pairs, or values of each group."""
    smallest_margin: Statistic
    """The larger absolute end of the test's 90% interval: above it, two one-sided tests at 0.05
    call the two equivalent."""
    unpaired: Statistic
    """Student's unpaired t-test over all values, which the paper used."""

    @property
    def is_paired(self) -> bool:
        """Whether `test` is that of the pairs."""
        return self.differences.n >= FEWEST_PAIRS

    @property
    def without_partner(self) -> int:
        """Number of values of either group that are in no pair."""
        return self.a.n + self.b.n - 2 * self.differences.n


def compare(
    a_values: ArrayLike,
    b_values: ArrayLike,
    pairs: Sequence[tuple[float, float]] = (),
    *,
    names: Names = ("a", "b"),
) -> GroupComparison:
    """Compare two groups of finite numbers, by `pairs` of them if there are FEWEST_PAIRS.

    `names` are what each `missing` calls the groups. Raises ValueError if a number is not finite.
    """
    a, b = summarise_sample(a_values), summarise_sample(b_values)
    differences = summarise_sample([x - y for x, y in pairs])
    if differences.n >= FEWEST_PAIRS:
        value, missing, few = differences.mean, _no_spread(differences, pairs, names), ""
        if differences.n < FEWEST:
            few = f"at least {FEWEST} pairs are needed, there are {differences.n}"
    else:
        value, missing = difference_of_means(a, b), obstacle(a, b, names=names)
        few = obstacle(a, b, names=names, fewest=FEWEST)
    nothing = Statistic(missing=missing)
    test, effect = Statistic(value=value, missing=missing), nothing
    detectable, margin = Statistic(missing=missing or few), nothing
    if not missing:
        if differences.n >= FEWEST_PAIRS:
            estimate = differences.estimate()
            assert differences.sd is not None
            effect = estimate.effect(differences.sd)
        else:
            estimate, (student, sd) = welch_difference(a, b), student_difference(a, b)
            effect = student.effect(sd)
        test, margin = estimate.test(), Statistic(value=estimate.smallest_margin())
        if not few:
            detectable = Statistic(value=estimate.detectable())
    return GroupComparison(
        names=names,
        a=a,
        b=b,
        differences=differences,
        lower=sum(x < y for x, y in pairs),
        correlation=correlate([x for x, _ in pairs], [y for _, y in pairs], names=names),
        test=test,
        effect=effect,
        detectable=detectable,
        smallest_margin=margin,
        unpaired=t_test(a, b, equal_variances=True, names=names),
    )


def _no_spread(
    differences: SampleSummary, pairs: Sequence[tuple[float, float]], names: Names
) -> str:
    """Why differences that are equal up to rounding have no test; empty if they have one."""
    rounding = 8 * sys.float_info.epsilon * max(abs(value) for pair in pairs for value in pair)
    if (differences.sd or 0.0) >= max(sys.float_info.min, rounding):
        return ""
    count = "both pairs" if differences.n == 2 else f"all {differences.n} pairs"
    return f"{names[0]} minus {names[1]} is the same in {count}: no spread to compare it with"
