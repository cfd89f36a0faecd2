from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.stats

from orchestrator.analysis import contrast_numbers, flatten, rows
from orchestrator.report.findings import Finding, describe, judge
from orchestrator.report.sections.groups import comparisons
from search_spaces.analyses import Comparison
from tests.support.synthetic_results import done_trial

SHAPE = np.array([-1.5, -1.0, -0.6, -0.3, -0.1, 0.1, 0.3, 0.6, 1.0, 1.5])
DENSE = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]
BETTER = [9.0, 18.8, 28.9, 39.1, 48.8, 59.2]
UNCLEAR = [9.0, 21.2, 28.9, 41.1, 48.8, 60.9]
SHIFT = 100
"""Offset of one group's seeds, so that two groups share no seed."""


def make_values(mean: float, sd: float, n: int = 10) -> list[float]:
    values = SHAPE[:n] - SHAPE[:n].mean()
    return list(mean + sd * values / values.std(ddof=1))


SOFTMAX = make_values(57.08, 0.10)


def row_of(values: list[float], baseline: list[float], *, shift: int = SHIFT) -> Any:
    trials = [done_trial("GSS", seed, test_perplexity=x) for seed, x in enumerate(values)]
    trials += [
        done_trial("Softmax", seed + shift, test_perplexity=x) for seed, x in enumerate(baseline)
    ]
    request = Comparison(metric="test_perplexity", baselines={"GSS": "Softmax"})
    [row] = rows(contrast_numbers(flatten(trials).frame(), request, corpus="ptb").comparisons)
    return row


def finding_of(row: Any, holm_p: float | None = None, *, margin: float = 0.0) -> Finding:
    row.holm_p = holm_p or row.holm_p
    [finding] = comparisons(
        [row], Comparison(metric="test_perplexity", baselines={"GSS": "Softmax"}, margin=margin)
    )
    return finding


def test_significant_difference_names_lower_group() -> None:
    """Expected values come from Welch's test of the published means and deviations."""
    low = make_values(56.81, 0.11)
    for row, outcome, ends in (
        (row_of(low, SOFTMAX), "lower (better)", (-0.369, -0.171)),
        (row_of(SOFTMAX, low), "higher (worse)", (0.171, 0.369)),
    ):
        finding = finding_of(row)
        [verdict] = finding.verdicts
        assert (verdict.verdict, verdict.groups, verdict.n) == (
            outcome.partition(" ")[0],
            ("GSS", "Softmax"),
            20,
        )
        assert verdict.p == pytest.approx(2.0e-5, rel=0.05)
        assert verdict.interval == pytest.approx(ends, abs=5e-4)
        assert finding.sentence.startswith(f"GSS has a {outcome} test perplexity than Softmax")
        assert "by 0.270 " in finding.sentence and "0.171 to 0.369" in finding.sentence
        assert "fewer than two common seeds" in finding.sentence


def test_adjusted_p_decides() -> None:
    row = row_of(make_values(56.95, 0.13), SOFTMAX)
    assert row.difference_p < 0.05
    for holm_p, is_lower in ((0.09, False), (0.044, True), (0.05, False)):
        [verdict] = finding_of(row, holm_p).verdicts
        assert (verdict.verdict == "lower") == is_lower and verdict.p == holm_p
        assert verdict.numbers["unadjusted_p"] == row.difference_p


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (row_of(make_values(57.02, 0.13), SOFTMAX), "over 20 trials"),
        (row_of(make_values(57.08, 0.13), SOFTMAX), "often be missed"),
        (row_of(UNCLEAR, DENSE, shift=0), "at the same 6 seeds"),
        (row_of(UNCLEAR[:4], DENSE[:4], shift=0), "at least 5 pairs are"),
    ],
)
def test_insignificant_is_never_called_equal(row: Any, words: str) -> None:
    text = finding_of(row).sentence
    assert "was shown" in text and "GSS minus Softmax is between" in text
    assert words in text
    assert not re.search(
        r"\b(equal|the same|no difference|identical|equivalent)\b",
        text.replace("the same 6 seeds", "").replace("the same 4 seeds", ""),
    )


def test_margin_makes_groups_equivalent() -> None:
    """Two one-sided tests at 5% show equivalence if the 90% interval is within the margin."""
    row = row_of(make_values(57.08, 0.13), SOFTMAX)
    low, high = scipy.stats.ttest_ind(
        make_values(57.08, 0.13), SOFTMAX, equal_var=False
    ).confidence_interval(0.9)
    needed = max(-low, high)
    for margin, outcome in ((0.99, "no difference shown"), (1.01, "equivalent within a margin")):
        [verdict] = finding_of(row, margin=needed * margin).verdicts
        assert verdict.verdict == outcome
    assert "within 0.2" in finding_of(row, margin=0.2).sentence


def test_missing_test_gives_reason() -> None:
    one_seed = finding_of(row_of([57.0], SOFTMAX))
    assert (
        one_seed.verdicts[0].verdict == "too few seeds"
        and "of GSS are needed, but there is 1" in one_seed.sentence
    )
    constant = finding_of(row_of(DENSE, DENSE, shift=0))
    assert constant.verdicts[0].verdict == "not measured"
    assert "the same in all 6 pairs" in constant.sentence


def test_pairs_share_seeds() -> None:
    finding = finding_of(row_of(BETTER, DENSE, shift=0))
    assert finding.verdicts[0].n == 6
    assert "at the same 6 seeds, by 1.03" in finding.sentence


def test_several_groups_share_a_sentence() -> None:
    values = {"GSS": BETTER, "MoS": UNCLEAR, "Softmax": DENSE}
    trials = [
        done_trial(name, seed, test_perplexity=x)
        for name, of_name in values.items()
        for seed, x in enumerate(of_name)
    ]
    request = Comparison(metric="test_perplexity", baselines={"GSS": "Softmax", "MoS": "Softmax"})
    tests = contrast_numbers(flatten(trials).frame(), request, corpus="ptb").comparisons
    [finding] = comparisons(list(rows(tests)), request)
    assert [one.verdict for one in finding.verdicts] == ["lower", "no difference shown"]
    assert finding.sentence.startswith("GSS has a lower") and "MoS" in finding.sentence


def test_interval_may_overrule_p() -> None:
    """A permutation test and a jackknife interval can disagree."""
    row = SimpleNamespace(r=0.5, r_low=-0.1, r_high=0.8)
    for needs_interval, outcome in ((False, "higher"), (True, "no difference shown")):
        verdict = judge(row, "r", 0.01, metric="m", groups=(), needs_interval=needs_interval)
        assert verdict.verdict == outcome


def test_text_of_a_study_stays_as_written() -> None:
    words = "a ( b )\n c * d"
    assert describe("text", text=words).sentence == words
