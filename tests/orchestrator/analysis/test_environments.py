"""What trials were computed with, counted."""

from __future__ import annotations

from orchestrator.analysis.environments import count_values


def test_each_value_is_counted_the_most_frequent_first() -> None:
    found = count_values([{"code": "b", "host": "x"}, {"code": "a", "host": "x"}, {"code": "a", "host": "x"}])
    assert found == {"code": {"a": 2, "b": 1}, "host": {"x": 3}}
    assert list(found["code"]) == ["a", "b"]


def test_values_that_are_as_frequent_come_in_their_own_order() -> None:
    found = count_values([{"code": code} for code in ("c", "a", "b")])
    assert list(found["code"]) == ["a", "b", "c"]


def test_a_trial_that_lacks_an_entry_counts_too() -> None:
    assert count_values([{}, {"torch": "2.13.0"}, {}]) == {"torch": {"": 2, "2.13.0": 1}}


def test_nothing_recorded_is_nothing_counted() -> None:
    assert count_values([]) == count_values([{}, {}]) == {}
