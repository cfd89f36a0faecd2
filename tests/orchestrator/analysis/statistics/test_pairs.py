"""Paired comparisons against scipy, statsmodels and numbers worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower
from statsmodels.stats.weightstats import DescrStatsW

from orchestrator.analysis.contrasts import ContrastNumbers, paired_numbers
from orchestrator.analysis.frames import flatten
from orchestrator.analysis.statistics.comparisons import PairComparison, compare_pairs
from orchestrator.analysis.statistics.significance import holm
from search_spaces.analyses import PairedComparison
from tests.support.synthetic_results import done_trial

pytestmark = pytest.mark.filterwarnings("error")

RANDOM = np.random.default_rng(3)
SHARED = RANDOM.normal(20, 4, 10)
A, B = list(SHARED + RANDOM.normal(0.5, 0.4, 10)), list(SHARED)


def test_the_test_is_scipys_and_its_interval_too() -> None:
    result = compare_pairs(A, B)
    truth = stats.ttest_rel(A, B)
    assert result.test.t == pytest.approx(truth.statistic)
    assert result.test.p_value == pytest.approx(truth.pvalue)
    assert result.test.df == 9 and result.pairs == 10
    interval = truth.confidence_interval(0.95)
    assert result.test.interval is not None
    assert (result.test.interval.low, result.test.interval.high) == pytest.approx((interval.low, interval.high))
    assert stats.ttest_ind(A, B).pvalue > 0.5, "what the pairs share hides the difference from an unpaired test"
    assert truth.pvalue < 0.02


def test_worked_by_hand() -> None:
    """Differences 1, 2, 3, 4, 0: mean 2, deviation sqrt(5/2), t = 2 / sqrt(1/2) = 2 sqrt(2), four degrees of freedom.

    With u = t / sqrt(4 + t^2), Student's t then has P(|T| > t) = 1 - 3/2 (u - u^3 / 3).
    """
    result = compare_pairs([2.0, 3.0, 5.0, 7.0, 3.0], [1.0, 1.0, 2.0, 3.0, 3.0])
    assert result.differences.mean == 2 and result.differences.sd == pytest.approx(math.sqrt(2.5))
    assert result.test.t == pytest.approx(2 * math.sqrt(2))
    t = 2 * math.sqrt(2)
    share = t / math.sqrt(4 + t * t)
    assert result.test.p_value == pytest.approx(1 - 1.5 * (share - share**3 / 3), rel=1e-12)
    assert (result.lower, result.higher, result.pairs) == (0, 4, 5), "and a tie"
    j = math.gamma(2) / (math.sqrt(2) * math.gamma(1.5))
    assert result.effect.value == pytest.approx(j * 2 / math.sqrt(2.5))


def test_the_smallest_margin_is_where_statsmodels_two_one_sided_tests_reach_005() -> None:
    margin = compare_pairs(A, B).smallest_margin.value
    assert margin is not None
    p_value = DescrStatsW(np.array(A) - np.array(B)).ttost_mean(-margin, margin)[0]
    assert p_value == pytest.approx(0.05)


@pytest.mark.parametrize("n", [5, 10])
def test_the_detectable_difference_has_80_percent_power_by_statsmodels(n: int) -> None:
    result = compare_pairs(A[:n], B[:n])
    assert result.detectable.value is not None and result.differences.sd is not None
    power = TTestPower().power(result.detectable.value / result.differences.sd, n, 0.05)
    assert power == pytest.approx(0.8, abs=1e-6)


def test_fewer_than_five_pairs_have_a_test_but_nothing_is_said_of_what_they_could_show() -> None:
    result = compare_pairs(A[:4], B[:4], names=("gated", "dense"))
    assert result.test.p_value is not None
    assert result.detectable.missing == "at least 5 pairs of gated and dense are needed, there are 4"


@pytest.mark.parametrize(
    ("a", "b", "missing"),
    [
        ([], [], "at least 2 pairs of gated and dense are needed, there are none"),
        ([1.0], [2.0], "at least 2 pairs of gated and dense are needed, there is 1"),
        ([1.0, 2.0], [1.5, 2.5], "gated minus dense is the same in both pairs: no spread to hold it against"),
        ([57.1, 57.2, 57.3], [57.0, 57.1, 57.2], "gated minus dense is the same in all 3 pairs: no spread to hold it"),
    ],
)
def test_what_cannot_be_tested_says_why(a: list[float], b: list[float], missing: str) -> None:
    """The last differences differ by the rounding of 0.1 alone, which is no spread."""
    result = compare_pairs(a, b, names=("gated", "dense"))
    assert result.test.p_value is None and result.test.missing.startswith(missing)
    for part in (result.effect, result.detectable, result.smallest_margin):
        assert part.missing.startswith(missing)


def test_sequences_of_two_lengths_are_no_pairs() -> None:
    with pytest.raises(ValueError, match="one length, got 2 and 1"):
        compare_pairs([1.0, 2.0], [1.0])


def numbers(values: dict[str, dict[int, float]], baselines: dict[str, str]) -> ContrastNumbers[PairComparison]:
    rows = [done_trial(group, seed, error=value) for group, result in values.items() for seed, value in result.items()]
    return paired_numbers(flatten(rows).frame(), PairedComparison(baselines=baselines, metric="error"))


def test_pairs_are_those_of_the_same_seed_in_whatever_order_and_holms_family_is_all_of_them() -> None:
    a = dict(zip(range(10), A, strict=True))
    b = dict(reversed(list(zip(range(10), B, strict=True))))
    c = {seed: value + 0.3 * (-1) ** seed + 0.05 * seed for seed, value in b.items()}
    first, second = numbers({"a": a, "b": b, "c": c}, {"a": "b", "c": "b", "no such": "b"}).contrasts
    p_values = [stats.ttest_rel(A, B).pvalue, stats.ttest_rel([c[s] for s in range(10)], B).pvalue]
    assert [first.comparison.test.p_value, second.comparison.test.p_value] == pytest.approx(p_values)
    assert [first.p_adjusted, second.p_adjusted] == pytest.approx(holm(p_values))


def test_a_value_without_a_partner_counts_nothing_and_is_counted() -> None:
    [line] = numbers({"a": {1: 1.0, 2: 3.0, 3: 9.0}, "b": {1: 0.0, 2: 1.0, 7: 5.0}}, {"a": "b"}).contrasts
    assert (line.comparison.pairs, line.unpaired) == (2, 2)
    assert line.comparison.test.value == 1.5
    [none] = numbers({"a": {1: 1.0}, "b": {2: 1.0}}, {"a": "b"}).contrasts
    assert none.comparison.test.missing == "at least 2 pairs of a and b are needed, there are none"
