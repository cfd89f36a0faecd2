"""Comparisons of groups and of pairs against scipy, statsmodels and numbers worked by hand; why a
part is missing."""

from __future__ import annotations

import math
from dataclasses import fields

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower
from statsmodels.stats.weightstats import DescrStatsW

from orchestrator.analysis.contrasts import contrast_numbers
from orchestrator.analysis.frames import flatten
from orchestrator.analysis.statistics.comparisons import GroupComparison, compare
from orchestrator.analysis.statistics.samples import holm
from search_spaces.analyses import Comparison
from tests.support.synthetic_results import done_trial

pytestmark = pytest.mark.filterwarnings("error")

SOFTMAX = [57.02, 57.11, 57.18, 56.95, 57.07]
MOS = [54.6, 55.1, 54.9, 54.8, 55.0, 54.7]
RANDOM = np.random.default_rng(3)
SHARED = RANDOM.normal(20, 4, 10)
A, B = list(SHARED + RANDOM.normal(0.5, 0.4, 10)), list(SHARED)


def paired(a: list[float], b: list[float]) -> GroupComparison:
    return compare(a, b, list(zip(a, b, strict=True)), names=("gated", "dense"))


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        (
            [],
            [],
            "at least 2 values of each group are needed, there is none of softmax and none of mos",
        ),
        ([57.0], MOS, "at least 2 values of each group are needed, there is 1 of softmax"),
        (SOFTMAX, [], "at least 2 values of each group are needed, there is none of mos"),
        (
            [57.0, 57.0],
            [54.9] * 3,
            "neither softmax nor mos has any spread to hold their difference against",
        ),
    ],
)
def test_every_part_of_a_comparison_that_cannot_be_made_says_why(
    a: list[float], b: list[float], words: str
) -> None:
    comparison = compare(a, b, names=("softmax", "mos"))
    parts = [
        getattr(comparison, field.name)
        for field in fields(comparison)
        if field.name != "correlation"
    ]
    assert [part.missing for part in parts if hasattr(part, "missing")] == [words] * 5
    assert (comparison.test.p_value, comparison.unpaired.interval, comparison.effect.value) == (
        None,
        None,
        None,
    )
    assert (comparison.test.value is None) == (not a or not b)


def test_four_values_or_pairs_have_no_detectable_difference() -> None:
    few, enough = compare(SOFTMAX[:4], MOS[:4]), compare(SOFTMAX, MOS[:5])
    assert few.test.p_value is not None
    assert (
        few.detectable.missing
        == "at least 5 values of each group are needed, there are 4 of a and 4 of b"
    )
    assert enough.detectable.value is not None
    pairs = paired(A[:4], B[:4])
    assert pairs.test.p_value is not None
    assert pairs.detectable.missing == "at least 5 pairs are needed, there are 4"


def test_too_few_pairs_leave_the_welch_test_of_scipy() -> None:
    result, truth = (
        compare(SOFTMAX, MOS, [(57.02, 54.6)]),
        stats.ttest_ind(SOFTMAX, MOS, equal_var=False),
    )
    assert not result.is_paired and result.without_partner == 9
    assert (result.test.t, result.test.p_value) == pytest.approx((truth.statistic, truth.pvalue))
    interval = truth.confidence_interval(0.95)
    assert result.test.interval is not None
    assert (result.test.interval.low, result.test.interval.high) == pytest.approx(
        (interval.low, interval.high)
    )


def test_the_test_of_pairs_is_scipys_and_its_interval_too() -> None:
    result, truth = paired(A, B), stats.ttest_rel(A, B)
    assert (result.test.t, result.test.p_value) == pytest.approx((truth.statistic, truth.pvalue))
    assert result.test.df == 9 and result.is_paired and result.without_partner == 0
    interval = truth.confidence_interval(0.95)
    assert result.test.interval is not None
    assert (result.test.interval.low, result.test.interval.high) == pytest.approx(
        (interval.low, interval.high)
    )
    assert result.correlation.value == pytest.approx(np.corrcoef(A, B)[0, 1])
    unpaired = stats.ttest_ind(A, B)
    assert (result.unpaired.t, result.unpaired.p_value) == pytest.approx(
        (unpaired.statistic, unpaired.pvalue)
    )
    assert unpaired.pvalue > 0.5 and truth.pvalue < 0.02, (
        "what the pairs share hides the difference"
    )


@pytest.mark.parametrize("correlation", [0.0, 0.7])
def test_a_common_seed_effect_narrows_the_paired_interval(correlation: float) -> None:
    """Ten seeds with a share of the variance common to both groups: widths by hand, coverage by
    counting."""
    rng, runs, n = np.random.default_rng(33), 400, 10
    common_SN, a_SN, b_SN = rng.normal(size=(3, runs, n))
    a_SN = 0.3 + math.sqrt(correlation) * common_SN + math.sqrt(1 - correlation) * a_SN
    b_SN = math.sqrt(correlation) * common_SN + math.sqrt(1 - correlation) * b_SN
    tests = [paired(list(a_n), list(b_n)) for a_n, b_n in zip(a_SN, b_SN, strict=True)]
    assert np.mean(
        [0.3 in one.test.interval for one in tests if one.test.interval]
    ) == pytest.approx(0.95, abs=0.025)
    widths = np.array(
        [
            (
                one.test.interval.high - one.test.interval.low,
                one.unpaired.interval.high - one.unpaired.interval.low,
            )
            for one in tests
            if one.test.interval and one.unpaired.interval
        ]
    )
    degrees_of_freedom = stats.t.ppf(0.975, n - 1) / stats.t.ppf(0.975, 2 * n - 2)
    paired_width, unpaired_width = np.sqrt((widths**2).mean(axis=0))
    assert paired_width / unpaired_width == pytest.approx(
        math.sqrt(1 - correlation) * degrees_of_freedom, rel=0.03
    )


def test_pairs_worked_by_hand() -> None:
    """Differences 1, 2, 3, 4, 0: mean 2, deviation sqrt(5/2), t = 2 / sqrt(1/2) = 2 sqrt(2), four
    degrees of freedom.

    With u = t / sqrt(4 + t^2), Student's t then has P(|T| > t) = 1 - 3/2 (u - u^3 / 3).
    """
    result = paired([2.0, 3.0, 5.0, 7.0, 3.0], [1.0, 1.0, 2.0, 3.0, 3.0])
    assert result.differences.mean == 2 and result.differences.sd == pytest.approx(math.sqrt(2.5))
    t = 2 * math.sqrt(2)
    share = t / math.sqrt(4 + t * t)
    assert result.test.t == pytest.approx(t)
    assert result.test.p_value == pytest.approx(1 - 1.5 * (share - share**3 / 3), rel=1e-12)
    assert result.lower == 0
    j = math.gamma(2) / (math.sqrt(2) * math.gamma(1.5))
    assert result.effect.value == pytest.approx(j * 2 / math.sqrt(2.5))


@pytest.mark.parametrize("n", [5, 10])
def test_statsmodels_agrees_on_the_margin_and_on_the_detectable_difference_of_pairs(n: int) -> None:
    result = paired(A[:n], B[:n])
    margin, detectable, sd = (
        result.smallest_margin.value,
        result.detectable.value,
        result.differences.sd,
    )
    assert margin is not None and detectable is not None and sd is not None
    assert DescrStatsW(np.array(A[:n]) - np.array(B[:n])).ttost_mean(-margin, margin)[
        0
    ] == pytest.approx(0.05)
    assert TTestPower().power(detectable / sd, n, 0.05) == pytest.approx(0.8, abs=1e-6)


@pytest.mark.parametrize(
    ("a", "b", "missing"),
    [
        (
            [1.0, 2.0],
            [1.5, 2.5],
            "gated minus dense is the same in both pairs: no spread to compare it with",
        ),
        (
            [57.1, 57.2, 57.3],
            [57.0, 57.1, 57.2],
            "gated minus dense is the same in all 3 pairs: no spread to",
        ),
    ],
)
def test_pairs_that_cannot_be_tested_say_why(a: list[float], b: list[float], missing: str) -> None:
    """The last differences differ by the rounding of 0.1 alone, which is no spread."""
    result = paired(a, b)
    assert result.test.p_value is None
    for part in (result.test, result.effect, result.detectable, result.smallest_margin):
        assert part.missing.startswith(missing)


def of_seeds(
    values: dict[str, dict[int, float]], baselines: dict[str, str]
) -> tuple[GroupComparison, ...]:
    rows = [
        done_trial(group, seed, error=value)
        for group, result in values.items()
        for seed, value in result.items()
    ]
    return contrast_numbers(
        flatten(rows).frame(), Comparison(baselines=baselines, metric="error"), corpus=""
    ).comparisons


def test_pairs_are_those_of_the_same_seed_in_whatever_order_and_holms_family_is_all_of_them() -> (
    None
):
    a = dict(zip(range(10), A, strict=True))
    b = dict(reversed(list(zip(range(10), B, strict=True))))
    c = {seed: value + 0.3 * (-1) ** seed + 0.05 * seed for seed, value in b.items()}
    first, second = of_seeds({"a": a, "b": b, "c": c}, {"a": "b", "c": "b", "no such": "b"})
    p_values = [stats.ttest_rel(A, B).pvalue, stats.ttest_rel([c[s] for s in range(10)], B).pvalue]
    assert [first.test.p_value, second.test.p_value] == pytest.approx(p_values)
    assert [first.p_adjusted, second.p_adjusted] == pytest.approx(holm(p_values))


def test_a_value_without_a_partner_counts_nothing_and_is_counted() -> None:
    [line] = of_seeds({"a": {1: 1.0, 2: 3.0, 3: 9.0}, "b": {1: 0.0, 2: 1.0, 7: 5.0}}, {"a": "b"})
    assert (line.differences.n, line.without_partner, line.test.value) == (2, 2, 1.5)
    assert line.unpaired.value == pytest.approx(13 / 3 - 2)


def test_a_seed_with_two_trials_is_no_pair() -> None:
    rows = [done_trial(group, seed, error=value) for group, seed, value in
            (("a", 1, 1.0), ("a", 1, 2.0), ("a", 2, 3.0), ("b", 1, 0.0), ("b", 2, 1.0))]  # fmt: skip
    frame, request = flatten(rows).frame(), Comparison(baselines={"a": "b"}, metric="error")
    [line] = contrast_numbers(frame, request, corpus="").comparisons
    assert not line.is_paired and line.differences.n == 1
    assert line.test.p_value == pytest.approx(
        stats.ttest_ind([1, 2, 3], [0, 1], equal_var=False).pvalue
    )
