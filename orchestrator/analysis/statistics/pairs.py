"""Everything that pairs of values, one pair a seed, say about their mean difference."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.analysis.statistics.estimates import Distance, EffectSize, Estimate, TTest
from orchestrator.analysis.statistics.samples import FEWEST, Names, SampleSummary, summarise_sample


@dataclass(frozen=True, kw_only=True)
class PairComparison:
    """Group a against group b over pairs; differences are a's value minus b's."""

    a: SampleSummary
    b: SampleSummary
    differences: SampleSummary
    lower: int
    """Pairs in which a's value is the lower one."""
    higher: int
    """Pairs in which it is the higher one; the others are ties."""
    test: TTest
    """The paired t-test (Student 1908)."""
    effect: EffectSize
    """Mean over standard deviation of the differences, with Hedges' correction (g_z): not Hedges' g of two groups."""
    detectable: Distance
    """The smallest true mean difference that so many pairs find at 0.05 with 80% power, if the true deviation of the
    differences is the one seen. There from FEWEST pairs."""
    smallest_margin: Distance
    """The larger absolute end of the 90% interval: above it, two one-sided tests at 0.05 call the two equivalent."""

    @property
    def pairs(self) -> int:
        """How many there are."""
        return self.differences.n


def compare_pairs(a_values: Sequence[float], b_values: Sequence[float], *, names: Names = ("a", "b")) -> PairComparison:
    """Compare two equally long sequences of finite numbers, of which those in the same place belong together.

    `names` are what each `missing` calls the two. Raises ValueError where the lengths differ or a number is not finite.
    """
    if len(a_values) != len(b_values):
        raise ValueError(f"pairs need two sequences of one length, got {len(a_values)} and {len(b_values)} values")
    differences = summarise_sample([a - b for a, b in zip(a_values, b_values, strict=True)])
    rounding = 8 * sys.float_info.epsilon * max(map(abs, (*a_values, *b_values)), default=0.0)
    missing = _obstacle(differences, rounding, names)
    few = missing or _too_few(differences.n, FEWEST, names)
    mean = None if missing else _mean(differences)
    return PairComparison(
        a=summarise_sample(a_values),
        b=summarise_sample(b_values),
        differences=differences,
        lower=sum(a < b for a, b in zip(a_values, b_values, strict=True)),
        higher=sum(a > b for a, b in zip(a_values, b_values, strict=True)),
        test=mean.test() if mean else TTest(difference=differences.mean, missing=missing),
        effect=mean.effect(differences.sd or 0.0) if mean else EffectSize(missing=missing),
        detectable=Distance(missing=few) if few or not mean else Distance(value=mean.detectable()),
        smallest_margin=Distance(value=mean.smallest_margin()) if mean else Distance(missing=missing),
    )


def _obstacle(differences: SampleSummary, rounding: float, names: Names) -> str:
    """Why there is no test, in words; empty where there is one. A spread of `rounding` is none."""
    if missing := _too_few(differences.n, 2, names):
        return missing
    if (differences.sd or 0.0) < max(sys.float_info.min, rounding):
        pairs = "both pairs" if differences.n == 2 else f"all {differences.n} pairs"
        return f"{names[0]} minus {names[1]} is the same in {pairs}: no spread to hold it against"
    return ""


def _too_few(pairs: int, fewest: int, names: Names) -> str:
    if pairs >= fewest:
        return ""
    there = "is 1" if pairs == 1 else f"are {pairs or 'none'}"
    return f"at least {fewest} pairs of {names[0]} and {names[1]} are needed, there {there}"


def _mean(differences: SampleSummary) -> Estimate:
    assert differences.mean is not None and differences.sd is not None
    return Estimate(value=differences.mean, error=differences.sd / math.sqrt(differences.n), df=differences.n - 1)
