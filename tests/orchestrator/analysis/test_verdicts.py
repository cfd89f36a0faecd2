from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from benchmarks.verdicts import COMMON_SD, verdict
from orchestrator.analysis import judge_pairs

PAIRS = np.array([[3.1, 2.0], [4.0, 3.5], [2.2, 1.9], [5.4, 4.1], [3.3, 3.4], [2.9, 2.3]])


def draws(effect: float, seeds: int, count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    common = rng.normal(scale=COMMON_SD, size=(count, seeds, 1))
    noise = rng.normal(scale=math.sqrt(0.5), size=(count, seeds, 2))
    return list(common + noise + np.array([effect, 0.0]))


def test_fixed_verdict_is_the_paired_test() -> None:
    result = judge_pairs(PAIRS)
    scipys = stats.ttest_rel(*PAIRS.T)
    assert result.p == pytest.approx(scipys.pvalue, rel=1e-12)
    assert result.interval == pytest.approx(tuple(scipys.confidence_interval()), rel=1e-12)
    assert (result.verdict, result.pairs) == ("b_better", 6)
    assert judge_pairs(PAIRS, lower_is_better=False).verdict == "a_better"
    assert judge_pairs(PAIRS[:, ::-1]).verdict == "a_better"


@pytest.mark.parametrize("margin", [0.8, 1.1])
def test_equivalence_is_two_one_sided_tests(margin: float) -> None:
    difference = PAIRS[:, 0] - PAIRS[:, 1]
    p = stats.ttest_1samp(difference, margin, alternative="less").pvalue
    assert (judge_pairs(PAIRS, margin=margin).verdict == "equivalent") == (p < 0.05)


@pytest.mark.parametrize("count", [5, 6])
def test_sequential_p_is_a_bayes_factor(count: int) -> None:
    """Effects of N(0, 1) against none, integrated over the noncentral t distribution."""
    pairs = PAIRS[:count]
    t = stats.ttest_rel(*pairs.T).statistic
    mixture = integrate.quad(
        lambda effect: (
            stats.nct.pdf(t, count - 1, math.sqrt(count) * effect) * stats.norm.pdf(effect)
        ),
        -9,
        9,
    )[0]
    result = judge_pairs(pairs, sequential=True)
    assert result.p == pytest.approx(stats.t.pdf(t, count - 1) / mixture, rel=1e-6)
    assert result.interval is not None and result.difference is not None
    # A shift of all pairs to an end of the interval has evidence of 20.
    moved = pairs - np.array([result.interval[0], 0.0])
    assert judge_pairs(moved, sequential=True).p == pytest.approx(0.05, rel=1e-6)


@pytest.mark.parametrize(
    ("effect", "wrong", "nominal"),
    [(0.0, ("a_better", "b_better"), 0.05), (1.0, ("equivalent",), 0.05)],
)
@pytest.mark.parametrize("seeds", [5, 10, 60])
def test_wrong_verdicts_are_rare(
    effect: float, wrong: tuple[str, ...], nominal: float, seeds: int
) -> None:
    """60 seeds are looked at again and again."""
    count, is_sequential = (80, True) if seeds == 60 else (300, False)
    margin = 1.0 if effect else 0.0
    found = [
        verdict(pairs, margin=margin, sequential=is_sequential)[0]
        for pairs in draws(effect, seeds, count)
    ]
    share = sum(name in wrong for name in found) / count
    assert share <= nominal + 4 * math.sqrt(nominal * (1 - nominal) / count)


def test_large_effect_ends_a_sequential_comparison() -> None:
    found = [verdict(pairs, margin=0.0, sequential=True) for pairs in draws(2.5, 60, 40)]
    assert {name for name, _ in found} == {"b_better"}
    assert np.mean([count for _, count in found]) < 12


@pytest.mark.parametrize("margin", [0.0, 1.5])
@pytest.mark.parametrize("sequential", [False, True])
def test_needed_pairs_have_the_power(margin: float, sequential: bool) -> None:
    """The command that is printed for an open comparison is `--until-settled`."""
    effect = 0.0 if margin else 0.8
    first = np.column_stack([np.array([-1.0, 0.0, 1.0, -1.0, 1.0]) + effect, np.zeros(5)])
    result = judge_pairs(first, margin=margin / 2, sequential=sequential)
    needed = result.pairs_needed
    assert needed is not None and result.verdict == "no_difference_shown"
    found = [
        judge_pairs(pairs, margin=margin / 2, sequential=True).verdict
        for pairs in draws(effect, needed, 400)
    ]
    share = sum(name == ("equivalent" if margin else "b_better") for name in found) / 400
    assert share == pytest.approx(0.8, abs=0.08)


def test_pairs_without_spread_get_no_test() -> None:
    result = judge_pairs([(1.5, 1.0)] * 6)
    assert (result.verdict, result.p) == ("no_difference_shown", None)
    assert "no spread" in result.missing
    assert judge_pairs([]).verdict == judge_pairs(PAIRS[:1]).verdict == "too_few_seeds"
