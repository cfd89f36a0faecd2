from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from orchestrator.analysis import contrast_numbers, flatten, rows
from orchestrator.report.sections.groups import verdict
from search_spaces.analyses import Comparison
from tests.support.synthetic_results import done_trial

SHAPE = np.array([-1.5, -1.0, -0.6, -0.3, -0.1, 0.1, 0.3, 0.6, 1.0, 1.5])
DENSE = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]
BETTER = [9.0, 18.8, 28.9, 39.1, 48.8, 59.2]
UNCLEAR = [9.0, 21.2, 28.9, 41.1, 48.8, 60.9]
SHIFT = 100
"""Seed offset that leaves two groups without pairs."""


def make_values(mean: float, sd: float, n: int = 10) -> list[float]:
    values = SHAPE[:n] - SHAPE[:n].mean()
    return list(mean + sd * values / values.std(ddof=1))


SOFTMAX = make_values(57.08, 0.10)


def row_of(values: list[float], baseline: list[float], *, shift: int = SHIFT) -> Any:
    """Return the test of GSS against Softmax; without a `shift` they share seeds."""
    trials = [done_trial("GSS", seed, test_perplexity=x) for seed, x in enumerate(values)]
    trials += [
        done_trial("Softmax", seed + shift, test_perplexity=x) for seed, x in enumerate(baseline)
    ]
    request = Comparison(baselines={"GSS": "Softmax"})
    [row] = rows(contrast_numbers(flatten(trials).frame(), request, corpus="ptb").comparisons)
    return row


def verdict_of(row: Any, holm_p: float | None = None) -> str:
    row.holm_p = holm_p or row.holm_p
    return verdict(row, "test_perplexity")


def test_significant_difference_names_lower_group() -> None:
    """Welch's test of the published means and deviations is the truth."""
    low = make_values(56.81, 0.11)
    for row, names in (
        (row_of(low, SOFTMAX), ("GSS", "Softmax")),
        (row_of(SOFTMAX, low), ("Softmax", "GSS")),
    ):
        text = verdict_of(row)
        assert text.startswith(f"{names[0]} has a lower test perplexity than {names[1]}, by 0.270 ")
        assert "0.171 to 0.369; Holm-adjusted p = 2.0e-05" in text and "unpaired (Welch" in text


def test_adjusted_p_decides() -> None:
    row = row_of(make_values(56.95, 0.13), SOFTMAX)
    assert row.difference_p < 0.05
    text = verdict_of(row, 0.09)
    assert "was shown" in text and "Holm-adjusted p = 0.090, unadjusted p = 0.023" in text
    assert "has a lower" in verdict_of(row, 0.044)
    assert "was shown" in verdict_of(row, 0.05), "exactly the threshold"


@pytest.mark.parametrize(
    ("row", "could"),
    [
        (row_of(make_values(57.02, 0.13), SOFTMAX), "10 seeds of each detect with 80%"),
        (row_of(make_values(57.02, 0.13, 6), SOFTMAX), "6 and 10 seeds detect"),
        (row_of(make_values(57.08, 0.13), SOFTMAX), "detect with"),
        (row_of(UNCLEAR, DENSE, shift=0), "6 pairs detect with 80% power is"),
        (row_of(UNCLEAR[:4], DENSE[:4], shift=0), "at least 5 pairs are"),
    ],
)
def test_what_is_not_significant_is_never_called_equal(row: Any, could: str) -> None:
    text = verdict_of(row)
    assert "was shown" in text and "GSS minus Softmax is between" in text
    assert could in text
    assert not re.search(
        r"\b(equal|the same|no difference|identical|equivalent)\b",
        text.replace("the same seed", ""),
    )


def test_a_missing_test_says_why() -> None:
    text = verdict_of(row_of([57.0], SOFTMAX))
    assert "cannot be compared" in text and "GSS has 1" in text
    assert "the same in all 6 pairs" in verdict_of(row_of(DENSE, DENSE, shift=0))


def test_pairs_count_lower_seeds() -> None:
    text = verdict_of(row_of(BETTER, DENSE, shift=0))
    assert text.startswith("GSS has a lower test perplexity than Softmax at the same seed, by 1.03")
    assert text.endswith("GSS is lower at 6 of 6 seeds.")
