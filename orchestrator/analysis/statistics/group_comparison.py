"""Everything that two groups of values, one a seed, say about the difference of their means."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from orchestrator.analysis.statistics.bootstrap import SEED, BootstrapInterval, bootstrap_interval
from orchestrator.analysis.statistics.effect_size import EffectSize, hedges_g
from orchestrator.analysis.statistics.equivalence import (
    Distance,
    Equivalence,
    smallest_detectable_difference,
    smallest_equivalence_margin,
    tost,
)
from orchestrator.analysis.statistics.samples import FEWEST, Names, SampleSummary, obstacle, summarise_sample
from orchestrator.analysis.statistics.significance import TTest, students_t, welch_t


@dataclass(frozen=True, kw_only=True)
class GroupComparison:
    """Group a against group b; differences are a's mean minus b's."""

    a: SampleSummary
    b: SampleSummary
    student: TTest
    welch: TTest
    effect: EffectSize
    bootstrap: BootstrapInterval
    detectable: Distance
    """What Welch's test at 0.05 finds with 80% power, if the true deviations are those seen. Like the bootstrap, it is
    there from FEWEST values of each group."""
    smallest_margin: Distance
    equivalence: Equivalence | None
    """None where no margin was given."""


def compare(
    a_values: ArrayLike,
    b_values: ArrayLike,
    margin: float | None = None,
    *,
    seed: int = SEED,
    names: Names = ("a", "b"),
) -> GroupComparison:
    """Compare two groups of finite numbers; `margin`, in the metric's unit, asks for their equivalence too.

    `seed` is the bootstrap's, `names` are what each `missing` calls the groups.
    """
    a, b = summarise_sample(a_values), summarise_sample(b_values)
    few = obstacle(a, b, names=names) or obstacle(a, b, names=names, fewest=FEWEST)
    return GroupComparison(
        a=a,
        b=b,
        student=students_t(a, b, names=names),
        welch=welch_t(a, b, names=names),
        effect=hedges_g(a, b, names=names),
        bootstrap=BootstrapInterval(missing=few) if few else bootstrap_interval(a_values, b_values, seed, names=names),
        detectable=Distance(missing=few) if few else smallest_detectable_difference(a.sd, a.n, b.sd, b.n, names=names),
        smallest_margin=smallest_equivalence_margin(a, b, names=names),
        equivalence=None if margin is None else tost(a, b, margin, names=names),
    )
