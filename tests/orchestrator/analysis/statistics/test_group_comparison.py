"""What a comparison of two groups has for how many values, and why it lacks the rest."""

from __future__ import annotations

from dataclasses import fields

import pytest

from orchestrator.analysis.statistics.comparisons import compare

SOFTMAX = [57.02, 57.11, 57.18, 56.95, 57.07]
MOS = [54.6, 55.1, 54.9, 54.8, 55.0, 54.7]


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
    reasons = [part.missing for part in parts if hasattr(part, "missing")]
    assert reasons == [words] * 6
    assert (comparison.test.p_value, comparison.welch.interval, comparison.effect.value) == (None, None, None)
    assert (comparison.test.value is None) == (not a or not b)


def test_four_values_of_each_have_a_test_but_no_bootstrap_and_no_detectable_difference() -> None:
    comparison = compare(SOFTMAX[:4], MOS[:4])
    assert comparison.test.p_value is not None
    assert (comparison.bootstrap.interval, comparison.detectable.value) == (None, None)
    assert comparison.detectable.missing == "at least 5 values of each group are needed, there are 4 of a and 4 of b"
    enough = compare(SOFTMAX, MOS[:5])
    assert enough.bootstrap.interval is not None
    assert enough.detectable.value is not None
