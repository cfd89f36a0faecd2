"""A verdict claims what the test allows: "not significant" is not "equal"."""

from __future__ import annotations

import re

import numpy as np
import pytest

from orchestrator.analysis.statistics.comparisons import compare
from orchestrator.report import formats
from orchestrator.report.verdicts import verdict

MINUS = formats.MINUS
NAMES = ("GSS", "Softmax")
SHAPE = np.array([-1.5, -1.0, -0.6, -0.3, -0.1, 0.1, 0.3, 0.6, 1.0, 1.5])


def make_values(mean: float, sd: float, *, n: int = 10) -> list[float]:
    values = SHAPE[:n] - SHAPE[:n].mean()
    return list(mean + sd * values / values.std(ddof=1))


def test_a_significant_difference_says_which_is_lower_and_by_how_much() -> None:
    found = compare(make_values(56.81, 0.11), make_values(57.08, 0.10))
    assert verdict(found, None, names=("PLIF", "Softmax"), metric="test_perplexity") == (
        "PLIF has a lower test perplexity than Softmax, by 0.270 (95% interval 0.171 to 0.369; p = 1.9e-05)."
    )


def test_the_lower_one_is_named_first_whichever_way_round_they_come() -> None:
    found = compare(make_values(57.08, 0.10), make_values(56.81, 0.11))
    text = verdict(found, None, names=("Softmax", "PLIF"), metric="test_perplexity")
    assert text.startswith("PLIF has a lower test perplexity than Softmax, by 0.270 (95% interval 0.171 to 0.369;")


def test_what_is_not_significant_is_left_open_with_what_the_seeds_could_have_shown() -> None:
    found = compare(make_values(57.02, 0.13), make_values(57.08, 0.10))
    assert verdict(found, None, names=NAMES, metric="test_perplexity") == (
        "The difference in test perplexity between GSS and Softmax is not significant (p = 0.262): GSS minus Softmax "
        f"may lie anywhere from {MINUS}0.17 to +0.05 (95% interval), and the smallest difference that 10 seeds of each "
        "could have shown with 80% power is 0.15."
    )


def test_the_adjusted_p_value_decides_and_both_are_shown() -> None:
    found = compare(make_values(56.95, 0.13), make_values(57.08, 0.10))
    assert found.test.p_value is not None and found.test.p_value < 0.05
    text = verdict(found, 0.09, names=NAMES, metric="test_perplexity")
    assert "is not significant (Holm-adjusted p = 0.090, p = 0.022 unadjusted)" in text
    assert "(95% interval of this pair alone)" in text
    assert "has a lower" in verdict(found, 0.044, names=NAMES, metric="test_perplexity")


def test_exactly_the_threshold_is_not_significant() -> None:
    found = compare(make_values(56.81, 0.11), make_values(57.08, 0.10))
    assert "is not significant" in verdict(found, 0.05, names=NAMES, metric="test_perplexity")


def test_unequal_numbers_of_seeds_are_both_named() -> None:
    found = compare(make_values(57.02, 0.13, n=6), make_values(57.08, 0.10))
    assert "that 6 and 10 seeds could have shown" in verdict(found, None, names=NAMES, metric="test_perplexity")


@pytest.mark.parametrize("mean", [57.08, 57.07, 57.02, 56.99])
def test_no_verdict_calls_two_groups_equal(mean: float) -> None:
    found = compare(make_values(mean, 0.13), make_values(57.08, 0.10))
    text = verdict(found, None, names=NAMES, metric="test_perplexity")
    assert "not significant" in text
    assert not re.search(r"\b(equal|the same|no difference|identical)\b", text)
    assert text.count(".") - len(re.findall(r"\d\.\d", text)) == 1


def test_what_cannot_be_tested_is_said_in_words() -> None:
    found = compare([57.0], make_values(57.08, 0.10), names=NAMES)
    assert verdict(found, None, names=NAMES, metric="test_perplexity") == (
        "Nothing can be concluded about the test perplexity of GSS and Softmax: at least 2 values of each group are "
        "needed, there is 1 of GSS."
    )
