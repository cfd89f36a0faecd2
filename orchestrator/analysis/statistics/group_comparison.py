"""Everything that two groups of values, one a seed, say about the difference of their means."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from orchestrator.analysis.statistics.bootstrap import BootstrapInterval, bootstrap_interval
from orchestrator.analysis.statistics.estimates import Distance, EffectSize, TTest
from orchestrator.analysis.statistics.samples import (
    FEWEST,
    Names,
    SampleSummary,
    obstacle,
    pooled_sd,
    student_difference,
    summarise_sample,
    welch_difference,
)
from orchestrator.analysis.statistics.significance import students_t, welch_t


@dataclass(frozen=True, kw_only=True)
class GroupComparison:
    """Group a against group b; differences are a's mean minus b's."""

    a: SampleSummary
    b: SampleSummary
    student: TTest
    welch: TTest
    effect: EffectSize
    """Hedges' g, in units of the standard deviation that the two groups share."""
    bootstrap: BootstrapInterval
    detectable: Distance
    """What Welch's test at 0.05 finds with 80% power, if the true deviations are those seen. Like the bootstrap, it is
    there from FEWEST values of each group."""
    smallest_margin: Distance
    """Above it two one-sided Welch tests at 0.05 call the two equivalent."""


def compare(a_values: ArrayLike, b_values: ArrayLike, *, names: Names = ("a", "b")) -> GroupComparison:
    """Compare two groups of finite numbers; `names` are what each `missing` calls them."""
    a, b = summarise_sample(a_values), summarise_sample(b_values)
    missing = obstacle(a, b, names=names)
    few = missing or obstacle(a, b, names=names, fewest=FEWEST)
    return GroupComparison(
        a=a,
        b=b,
        student=students_t(a, b, names=names),
        welch=welch_t(a, b, names=names),
        effect=EffectSize(missing=missing) if missing else student_difference(a, b).effect(pooled_sd(a, b)),
        bootstrap=BootstrapInterval(missing=few) if few else bootstrap_interval(a_values, b_values, names=names),
        detectable=Distance(missing=few) if few else Distance(value=welch_difference(a, b).detectable()),
        smallest_margin=Distance(missing=missing)
        if missing
        else Distance(value=welch_difference(a, b).smallest_margin()),
    )
