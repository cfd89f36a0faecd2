"""A verdict claims what the test allows: "not significant" is not "equal"."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from orchestrator.analysis.statistics.comparisons import GroupComparison, compare
from orchestrator.report import formats
from orchestrator.report.sections.significance import verdict

MINUS = formats.MINUS
NAMES = ("GSS", "Softmax")
SHAPE = np.array([-1.5, -1.0, -0.6, -0.3, -0.1, 0.1, 0.3, 0.6, 1.0, 1.5])
SOFTMAX = (57.08, 0.10)
DENSE = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]
BETTER = [9.0, 18.8, 28.9, 39.1, 48.8, 59.2]
UNCLEAR = [9.0, 21.2, 28.9, 41.1, 48.8, 60.9]
WELCH = " The test is unpaired (Welch's), as fewer than two seeds have one trial of each."


def make_values(mean: float, sd: float, *, n: int = 10) -> list[float]:
    values = SHAPE[:n] - SHAPE[:n].mean()
    return list(mean + sd * values / values.std(ddof=1))


def pair(a: list[float], b: list[float]) -> GroupComparison:
    return compare(a, b, list(zip(a, b, strict=True)), names=NAMES)


def say(comparison: Any, p_adjusted: float | None = None, *, names: tuple[str, str] = NAMES) -> str:
    return verdict(replace(comparison, names=names, p_adjusted=p_adjusted), "test_perplexity")


def test_a_significant_difference_says_which_is_lower_and_by_how_much_whichever_way_round_they_come() -> (
    None
):
    plif, softmax = make_values(56.81, 0.11), make_values(*SOFTMAX)
    text = (
        "PLIF has a lower test perplexity than Softmax, by 0.270 (95% interval 0.171 to 0.369; p = "
        "2.0e-05)." + WELCH
    )
    assert say(compare(plif, softmax), names=("PLIF", "Softmax")) == text
    assert say(compare(softmax, plif), names=("Softmax", "PLIF")) == text


def test_what_is_not_significant_is_left_open_with_what_the_seeds_could_have_shown() -> None:
    assert say(compare(make_values(57.02, 0.13), make_values(*SOFTMAX))) == (
        "The difference in test perplexity between GSS and Softmax is not significant (p = 0.263): "
        "GSS minus Softmax "
        f"may lie anywhere from {MINUS}0.17 to +0.05 (95% interval), and the smallest difference "
        f"that 10 seeds of each "
        "could have shown with 80% power is 0.15." + WELCH
    )
    unequal = compare(make_values(57.02, 0.13, n=6), make_values(*SOFTMAX))
    assert "that 6 and 10 seeds could have shown" in say(unequal)


def test_the_adjusted_p_value_decides_and_both_are_shown() -> None:
    found = compare(make_values(56.95, 0.13), make_values(*SOFTMAX))
    assert found.test.p_value is not None and found.test.p_value < 0.05
    text = say(found, 0.09)
    assert "is not significant (Holm-adjusted p = 0.090, p = 0.023 unadjusted)" in text
    assert "(95% interval of this comparison alone)" in text
    assert "has a lower" in say(found, 0.044)
    assert "is not significant" in say(found, 0.05), "exactly the threshold"


@pytest.mark.parametrize("mean", [57.08, 57.07, 57.02, 56.99])
def test_no_verdict_calls_two_groups_equal(mean: float) -> None:
    text = say(compare(make_values(mean, 0.13), make_values(*SOFTMAX))).removesuffix(WELCH)
    assert "not significant" in text
    assert not re.search(r"\b(equal|the same|no difference|identical)\b", text)
    assert text.count(".") - len(re.findall(r"\d\.\d", text)) == 1


def test_what_cannot_be_tested_is_said_in_words() -> None:
    text = say(compare([57.0], make_values(*SOFTMAX), names=NAMES))
    assert text.startswith("Nothing can be concluded about the test perplexity of GSS and Softmax:")
    assert "GSS has 1" in text
    assert "the same in all 6 pairs" in say(pair(DENSE, DENSE))


def test_pairs_say_at_how_many_seeds_the_difference_goes_which_way() -> None:
    text = say(pair(BETTER, DENSE), 0.001)
    assert text.startswith(
        "GSS has a lower test perplexity than Softmax at the same seed, by 1.03 (95% interval of"
    )
    assert text.endswith("; GSS is lower at 6 of 6 seeds.")


@pytest.mark.parametrize(
    ("n", "could"), [(6, "6 pairs could have shown with 80% power is"), (4, "at least 5 pairs are")]
)
def test_what_is_not_significant_over_pairs_is_left_open_and_never_called_equal(
    n: int, could: str
) -> None:
    found = pair(UNCLEAR[:n], DENSE[:n])
    text = say(found)
    assert "is not significant (p = " in text and "GSS minus Softmax may lie anywhere from" in text
    assert f"GSS is lower at {found.lower} of {n} seeds" in text and could in text
    assert not re.search(r"\b(equal|no difference|identical|equivalent)\b", text)
