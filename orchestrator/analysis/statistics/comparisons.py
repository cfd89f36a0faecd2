"""The difference of two groups of values, one a seed: paired by seed if the groups share seeds,
else unpaired."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
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
from orchestrator.analysis.tidy_frames import estimated, tested

FEWEST_PAIRS = 2
"""Pairs that a paired test needs."""


def compare(
    a_values: ArrayLike,
    b_values: ArrayLike,
    pairs: Sequence[tuple[float, float]] = (),
    *,
    names: Names = ("a", "b"),
) -> dict[str, Any]:
    """Compare group a with its baseline b, by `pairs` of their values if there are FEWEST_PAIRS.

    `names` are those of the groups. Return the columns of the test: the pairs, both groups, and:

    - correlation [95%]: Pearson's r of the pairs, from what the seed does to both.
    - test: "paired", Student's t-test of the differences (1908), or "Welch", unpaired.
    - difference [95%], a less b, with its t, df and p.
    - effect [95%]: Hedges' g of the same test: paired in units of the standard deviation of the
      differences (g_z), unpaired in units of the deviation that both groups share.
    - detectable_difference: the smallest true difference that the test finds at 0.05 with 80%
      power, if the true deviations are those seen. It needs FEWEST pairs, or values of each group.
    - equal_within: the larger absolute end of the test's 90% interval. Two one-sided tests at 0.05
      call the two equivalent within any margin above it.
    - unpaired [95%]: Student's unpaired t-test over all values, which the paper used.
    - missing: why there is no test, or no detectable difference.

    Raises ValueError if a number is not finite.
    """
    a, b = summarise_sample(a_values), summarise_sample(b_values)
    paired_a, paired_b = np.reshape(np.asarray(pairs, dtype=np.float64), (-1, 2)).T
    differences = summarise_sample(paired_a - paired_b)
    is_paired = differences.n >= FEWEST_PAIRS
    if is_paired:
        value, missing, few = (
            differences.mean,
            _no_spread(differences, float(np.abs(pairs).max()), names),
            "",
        )
        if differences.n < FEWEST:
            few = f"at least {FEWEST} pairs are needed, there are {differences.n}"
    else:
        value, missing = difference_of_means(a, b), obstacle(a, b, names=names)
        few = obstacle(a, b, names=names, fewest=FEWEST)
    test, effect, margin, detectable = Statistic(value=value), Statistic(), None, None
    if not missing:
        if is_paired:
            estimate = differences.estimate()
            assert differences.sd is not None
            effect = estimate.effect(differences.sd)
        else:
            estimate, (student, sd) = welch_difference(a, b), student_difference(a, b)
            effect = student.effect(sd)
        test, margin = estimate.test(), estimate.smallest_margin()
        detectable = None if few else estimate.detectable()
    unpaired = t_test(a, b, equal_variances=True, names=names)
    return {
        "group": names[0],
        "baseline": names[1],
        "pairs": differences.n,
        "pairs_lower": int((paired_a < paired_b).sum()),
        "without_partner": a.n + b.n - 2 * differences.n,
        "n_group": a.n,
        "mean_group": a.mean,
        "sd_group": a.sd,
        "n_baseline": b.n,
        "mean_baseline": b.mean,
        "sd_baseline": b.sd,
        **estimated("correlation", correlate(paired_a, paired_b, names=names)),
        "test": "paired" if is_paired else "Welch",
        **tested("difference", test),
        "difference_t": test.t,
        "sd_difference": differences.sd,
        **estimated("effect", effect),
        "detectable_difference": detectable,
        "equal_within": margin,
        **tested("unpaired", unpaired),
        "unpaired_t": unpaired.t,
        "missing": missing or few,
    }


def _no_spread(differences: SampleSummary, largest: float, names: Names) -> str:
    """Why differences that are equal up to the rounding of the `largest` value have no test; empty
    if they have one."""
    if (differences.sd or 0.0) >= max(sys.float_info.min, 8 * sys.float_info.epsilon * largest):
        return ""
    count = "both pairs" if differences.n == 2 else f"all {differences.n} pairs"
    return f"{names[0]} minus {names[1]} is the same in {count}: no spread to compare it with"
