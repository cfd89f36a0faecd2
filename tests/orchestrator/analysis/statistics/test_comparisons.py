"""Comparisons of groups and of pairs against scipy, statsmodels and numbers worked by hand; why a part is missing."""

from __future__ import annotations

import math
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.power import TTestPower
from statsmodels.stats.weightstats import DescrStatsW

from orchestrator.analysis.contrasts import ContrastNumbers, paired_numbers
from orchestrator.analysis.frames import flatten
from orchestrator.analysis.statistics.comparisons import PairComparison, bootstrap_interval, compare, compare_pairs
from orchestrator.analysis.statistics.samples import holm
from search_spaces.analyses import PairedComparison
from tests.support.synthetic_results import done_trial

pytestmark = pytest.mark.filterwarnings("error")

SOFTMAX = [57.02, 57.11, 57.18, 56.95, 57.07]
MOS = [54.6, 55.1, 54.9, 54.8, 55.0, 54.7]
RANDOM = np.random.default_rng(3)
SHARED = RANDOM.normal(20, 4, 10)
A, B = list(SHARED + RANDOM.normal(0.5, 0.4, 10)), list(SHARED)


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ([], [], "at least 2 values of each group are needed, there is none of softmax and none of mos"),
        ([57.0], MOS, "at least 2 values of each group are needed, there is 1 of softmax"),
        (SOFTMAX, [], "at least 2 values of each group are needed, there is none of mos"),
        ([57.0, 57.0], [54.9] * 3, "neither softmax nor mos has any spread to hold their difference against"),
    ],
)
def test_every_part_of_a_comparison_that_cannot_be_made_says_why(a: list[float], b: list[float], words: str) -> None:
    comparison = compare(a, b, names=("softmax", "mos"))
    parts = [getattr(comparison, field.name) for field in fields(comparison)]
    assert [part.missing for part in parts if hasattr(part, "missing")] == [words] * 6
    assert (comparison.test.p_value, comparison.welch.interval, comparison.effect.value) == (None, None, None)
    assert (comparison.test.value is None) == (not a or not b)


def test_four_values_or_pairs_have_a_test_but_no_bootstrap_and_no_detectable_difference() -> None:
    few, enough = compare(SOFTMAX[:4], MOS[:4]), compare(SOFTMAX, MOS[:5])
    assert few.test.p_value is not None and few.bootstrap.interval is None
    assert few.detectable.missing == "at least 5 values of each group are needed, there are 4 of a and 4 of b"
    assert enough.bootstrap.interval is not None and enough.detectable.value is not None
    pairs = compare_pairs(A[:4], B[:4], names=("gated", "dense"))
    assert pairs.test.p_value is not None
    assert pairs.detectable.missing == "at least 5 pairs of gated and dense are needed, there are 4"


def test_two_lengths_are_no_pairs() -> None:
    with pytest.raises(ValueError, match="one length, got 2 and 1"):
        compare_pairs([1.0, 2.0], [1.0])


def test_the_same_seed_gives_the_same_bootstrap_interval_and_another_one_nearly_so() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.normal(57.0, 0.1, 10), rng.normal(57.1, 0.1, 10)
    first, again, second = (bootstrap_interval(a, b, seed) for seed in (7, 7, 8))
    assert first == again != second
    assert (first.low, first.high) == pytest.approx((second.low, second.high), abs=0.01)


def test_of_two_values_each_the_bootstrap_interval_is_all_that_resampling_can_give() -> None:
    """Sixteen equally likely samples of (0, 1) and (10, 12), symmetric about the mean difference; the least and the
    greatest are each one of them, and 1/16 is more than 2.5%."""
    interval = bootstrap_interval([0.0, 1.0], [10.0, 12.0])
    assert (interval.low, interval.high) == pytest.approx((0 - 12, 1 - 10))


def test_the_bootstrap_of_ten_normal_seeds_covers_the_truth_about_92_times_in_100() -> None:
    rng, runs, covered = np.random.default_rng(21), 400, 0
    for seed in range(runs):
        covered += 0.3 in bootstrap_interval(rng.normal(0.3, 1, 10), rng.normal(0, 1, 10), seed, resamples=1_000)
    assert covered / runs == pytest.approx(0.92, abs=0.03)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=5),
    st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=5),
)
def test_the_bootstrap_of_any_skew_gives_an_interval_inside_the_data(a: list[float], b: list[float]) -> None:
    assume(len(set(a)) > 1 or len(set(b)) > 1)
    interval = bootstrap_interval(a, b, resamples=1_000)
    slack = 1e-9 * max(map(abs, a + b))
    assert min(a) - max(b) - slack <= interval.low <= interval.high <= max(a) - min(b) + slack


def test_the_test_of_pairs_is_scipys_and_its_interval_too() -> None:
    result, truth = compare_pairs(A, B), stats.ttest_rel(A, B)
    assert (result.test.t, result.test.p_value) == pytest.approx((truth.statistic, truth.pvalue))
    assert result.test.df == 9 and result.pairs == 10
    interval = truth.confidence_interval(0.95)
    assert result.test.interval is not None
    assert (result.test.interval.low, result.test.interval.high) == pytest.approx((interval.low, interval.high))
    assert stats.ttest_ind(A, B).pvalue > 0.5, "what the pairs share hides the difference from an unpaired test"
    assert truth.pvalue < 0.02


def test_pairs_worked_by_hand() -> None:
    """Differences 1, 2, 3, 4, 0: mean 2, deviation sqrt(5/2), t = 2 / sqrt(1/2) = 2 sqrt(2), four degrees of freedom.

    With u = t / sqrt(4 + t^2), Student's t then has P(|T| > t) = 1 - 3/2 (u - u^3 / 3).
    """
    result = compare_pairs([2.0, 3.0, 5.0, 7.0, 3.0], [1.0, 1.0, 2.0, 3.0, 3.0])
    assert result.differences.mean == 2 and result.differences.sd == pytest.approx(math.sqrt(2.5))
    t = 2 * math.sqrt(2)
    share = t / math.sqrt(4 + t * t)
    assert result.test.t == pytest.approx(t)
    assert result.test.p_value == pytest.approx(1 - 1.5 * (share - share**3 / 3), rel=1e-12)
    assert (result.lower, result.higher, result.pairs) == (0, 4, 5), "and a tie"
    j = math.gamma(2) / (math.sqrt(2) * math.gamma(1.5))
    assert result.effect.value == pytest.approx(j * 2 / math.sqrt(2.5))


@pytest.mark.parametrize("n", [5, 10])
def test_statsmodels_agrees_on_the_margin_and_on_the_detectable_difference_of_pairs(n: int) -> None:
    result = compare_pairs(A[:n], B[:n])
    margin, detectable, sd = result.smallest_margin.value, result.detectable.value, result.differences.sd
    assert margin is not None and detectable is not None and sd is not None
    assert DescrStatsW(np.array(A[:n]) - np.array(B[:n])).ttost_mean(-margin, margin)[0] == pytest.approx(0.05)
    assert TTestPower().power(detectable / sd, n, 0.05) == pytest.approx(0.8, abs=1e-6)


@pytest.mark.parametrize(
    ("a", "b", "missing"),
    [
        ([], [], "at least 2 pairs of gated and dense are needed, there are none"),
        ([1.0], [2.0], "at least 2 pairs of gated and dense are needed, there is 1"),
        ([1.0, 2.0], [1.5, 2.5], "gated minus dense is the same in both pairs: no spread to hold it against"),
        ([57.1, 57.2, 57.3], [57.0, 57.1, 57.2], "gated minus dense is the same in all 3 pairs: no spread to hold it"),
    ],
)
def test_pairs_that_cannot_be_tested_say_why(a: list[float], b: list[float], missing: str) -> None:
    """The last differences differ by the rounding of 0.1 alone, which is no spread."""
    result = compare_pairs(a, b, names=("gated", "dense"))
    assert result.test.p_value is None
    for part in (result.test, result.effect, result.detectable, result.smallest_margin):
        assert part.missing.startswith(missing)


def numbers(values: dict[str, dict[int, float]], baselines: dict[str, str]) -> ContrastNumbers[PairComparison]:
    rows = [done_trial(group, seed, error=value) for group, result in values.items() for seed, value in result.items()]
    return paired_numbers(flatten(rows).frame(), PairedComparison(baselines=baselines, metric="error"))


def test_pairs_are_those_of_the_same_seed_in_whatever_order_and_holms_family_is_all_of_them() -> None:
    a = dict(zip(range(10), A, strict=True))
    b = dict(reversed(list(zip(range(10), B, strict=True))))
    c = {seed: value + 0.3 * (-1) ** seed + 0.05 * seed for seed, value in b.items()}
    first, second = numbers({"a": a, "b": b, "c": c}, {"a": "b", "c": "b", "no such": "b"}).comparisons
    p_values = [stats.ttest_rel(A, B).pvalue, stats.ttest_rel([c[s] for s in range(10)], B).pvalue]
    assert [first.test.p_value, second.test.p_value] == pytest.approx(p_values)
    assert [first.p_adjusted, second.p_adjusted] == pytest.approx(holm(p_values))


def test_a_value_without_a_partner_counts_nothing_and_is_counted() -> None:
    [line] = numbers({"a": {1: 1.0, 2: 3.0, 3: 9.0}, "b": {1: 0.0, 2: 1.0, 7: 5.0}}, {"a": "b"}).comparisons
    assert (line.pairs, line.unpaired, line.test.value) == (2, 2, 1.5)
