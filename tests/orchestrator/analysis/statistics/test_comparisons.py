"""Expected values come from scipy, statsmodels, an integral and printed tables."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower
from statsmodels.stats.weightstats import DescrStatsW

from orchestrator.analysis import Statistic, contrast_numbers, flatten, rows
from orchestrator.analysis.contrasts import compare
from orchestrator.analysis.statistics.estimates import Estimate
from orchestrator.analysis.statistics.samples import (
    SampleSummary,
    holm,
    student_difference,
    summarise_sample,
    t_test,
)
from search_spaces.analyses import Comparison
from tests.support.synthetic_results import done_trial

pytestmark = pytest.mark.filterwarnings("error")

SOFTMAX = [57.02, 57.11, 57.18, 56.95, 57.07]
MOS = [54.6, 55.1, 54.9, 54.8, 55.0, 54.7]
RANDOM = np.random.default_rng(3)
SHARED = RANDOM.normal(20, 4, 10)
A, B = list(SHARED + RANDOM.normal(0.5, 0.4, 10)), list(SHARED)
hundredths = st.lists(
    st.integers(-500, 500).map(lambda n: n / 100), min_size=2, max_size=12
).filter(lambda values: min(values) < max(values))


def paired(a: list[float], b: list[float]) -> dict[str, Any]:
    return compare(a, b, list(zip(a, b, strict=True)), names=("gated", "dense"))


def interval(statistic: Statistic) -> tuple[float, float]:
    assert statistic.interval is not None
    return statistic.interval.low, statistic.interval.high


@settings(deadline=None)
@given(hundredths, hundredths)
@pytest.mark.parametrize("equal_variances", [True, False])
def test_t_test_of_raw_values(equal_variances: bool, a: list[float], b: list[float]) -> None:
    result = t_test(summarise_sample(a), summarise_sample(b), equal_variances=equal_variances)
    expected = stats.ttest_ind(a, b, equal_var=equal_variances)
    truth = expected.statistic, expected.df, *expected.confidence_interval(0.95)
    assert (result.t, result.df, *interval(result)) == pytest.approx(truth, rel=1e-7, abs=1e-9)
    assert result.p_value == pytest.approx(expected.pvalue, rel=1e-7, abs=1e-12)


def test_sample_needs_finite_numbers() -> None:
    assert summarise_sample([0.1 + 0.2] * 7) == SampleSummary(n=7, mean=0.1 + 0.2, sd=0.0)
    assert summarise_sample([57.08]) == SampleSummary(n=1, mean=57.08, sd=None)
    assert summarise_sample([]) == SampleSummary(n=0, mean=None, sd=None)
    with pytest.raises(ValueError, match="finite"):
        summarise_sample([1.0, math.nan])


def test_holm_excludes_untested_comparisons() -> None:
    for n in (1, 3, 8):
        p_values = RANDOM.uniform(size=n) ** 3
        adjusted = holm(pd.Series([None, *p_values], dtype=object))
        assert list(adjusted) == [None, *multipletests(p_values, method="holm")[1]]


def test_pairs_use_the_paired_test() -> None:
    result, truth = paired(A, B), stats.ttest_rel(A, B)
    names = ("t", "p", "df", "low", "high")
    values = [result[f"difference_{name}"] for name in names]
    interval = truth.confidence_interval(0.95)
    assert values == pytest.approx([truth.statistic, truth.pvalue, 9, *interval])
    assert (result["test"], result["without_partner"]) == ("paired", 0)
    difference = np.array(A) - B
    g = difference.mean() / difference.std(ddof=1) * (1 - 3 / (4 * 9 - 1))
    assert result["effect"] == pytest.approx(g, rel=2e-3), "Hedges (1981), approximately"


NO_TEST = ("difference_p", "difference_low", "effect", "detectable_difference", "equal_within")


@pytest.mark.parametrize(
    ("a", "b", "are_pairs", "words"),
    [
        ([], [], False, "of mos are needed, but there are 0"),
        ([57.0], MOS, False, "of softmax are needed, but there is 1"),
        ([57.0, 57.0], [54.9] * 3, False, "neither softmax nor mos"),
        ([1.0, 2.0], [0.9, 1.9], True, "no spread"),
        # These differ only because 0.1 is rounded.
        ([57.1, 57.2, 57.3], [57.1 - 0.1, 57.2 - 0.1, 57.3 - 0.1], True, "no spread"),
    ],
)
def test_impossible_comparison_has_a_reason(
    a: list[float], b: list[float], are_pairs: bool, words: str
) -> None:
    pairs = list(zip(a, b, strict=True)) if are_pairs else []
    result = compare(a, b, pairs, names=("softmax", "mos"))
    assert words in result["missing"] and {result[name] for name in NO_TEST} == {None}
    assert are_pairs or result["unpaired_p"] is result["unpaired_low"] is None
    assert (result["difference"] is None) == (not a)


def test_four_values_detect_nothing() -> None:
    for few in (compare(SOFTMAX[:4], MOS[:4]), paired(A[:4], B[:4])):
        assert few["difference_p"] is not None and "at least 5" in few["missing"]
        assert few["detectable_difference"] is None


@pytest.mark.parametrize("n", [5, 10])
def test_detectable_difference_of_pairs(n: int) -> None:
    result = paired(A[:n], B[:n])
    margin, sd = result["equal_within"], result["sd_difference"]
    two_tests = DescrStatsW(np.array(A[:n]) - np.array(B[:n])).ttost_mean(-margin, margin)
    assert two_tests[0] == pytest.approx(0.05)
    power = TTestPower().power(result["detectable_difference"] / sd, n, 0.05)
    assert power == pytest.approx(0.8, abs=1e-6)


def test_detectable_distances_match_printed_values() -> None:
    """Cohen (1988), Table 2.4.1: d = 0.50 needs n = 64 per group.

    G*Power: with n = 10 per group, d = 1.3249 is detectable.
    """

    def detectable(n: int) -> float:
        return student_difference(*[SampleSummary(n=n, mean=0, sd=1)] * 2)[0].detectable_value()

    assert detectable(10) == pytest.approx(1.3249, abs=1e-4)
    assert 0.49 < detectable(64) <= 0.50 < detectable(63)


@pytest.mark.parametrize(("t", "df"), [(-2.1, 2.0), (0.0, 5.3), (1.9, 18.0), (25.0, 60.0)])
def test_effect_interval_solves_noncentral_t(t: float, df: float) -> None:
    ends_of_effect = interval(Estimate(value=t, error=1.0, df=df).effect(sd=1.0))
    assert stats.nct.cdf(t, df, ends_of_effect) == pytest.approx([0.975, 0.025], abs=1e-9)


@pytest.mark.parametrize(
    ("t", "df", "missing"), [(2.0, 1, "freedom"), (-1e9, 18, "standard errors")]
)
def test_effect_without_interval(t: float, df: float, missing: str) -> None:
    effect = Estimate(value=t, error=1.0, df=df).effect(sd=1.0)
    assert effect.interval is None and missing in effect.missing


@pytest.mark.parametrize(("third", "pairs"), [(3, 2), (1, 1)])
def test_same_seed_is_no_pair(third: int, pairs: int) -> None:
    values = [("a", 1, 1.0), ("a", 2, 3.0), ("a", third, 9.0), ("b", 1, 0.0), ("b", 2, 1.0)]
    frame = flatten([done_trial(group, seed, error=x) for group, seed, x in values]).frame()
    request = Comparison(baselines={"a": "b"}, metric="error")
    [line] = rows(contrast_numbers(frame, request, corpus="").comparisons)
    assert (line.pairs, line.without_partner) == (pairs, 5 - 2 * pairs)
    assert line.unpaired == pytest.approx(13 / 3 - 1 / 2)
