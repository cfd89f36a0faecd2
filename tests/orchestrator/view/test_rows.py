"""Pages of the trials' table against a filter and a sort written plainly."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from orchestrator.view import rows
from orchestrator.view.table import StudyTable
from orchestrator.view.trial_grid import box_filter

NUMBERS = st.one_of(st.none(), st.integers(-5, 5), st.floats(-5, 5, allow_nan=False))


def table(metrics: dict[str, list[Any]], names: list[str] | None = None) -> StudyTable:
    count = len(next(iter(metrics.values())))
    ids = tuple(f"{place:064x}" for place in range(count))
    return StudyTable(
        ids=ids,
        names=tuple(names or (f"trial {place}" for place in range(count))),
        settings={},
        metrics=metrics,
        ends={"state": ["done"] * count, "attempt": [1] * count, "cause": [None] * count},
        versions=dict.fromkeys(ids, ("done",)),
    )


@given(st.lists(NUMBERS, min_size=1, max_size=12), st.floats(-5, 5), st.floats(-5, 5))
def test_a_range_passes_what_lies_in_it(
    values: list[float | None], low: float, high: float
) -> None:
    low, high = (
        float(f"{end:.7g}") for end in (low, high)
    )  # as a reader can read them in the filter
    passed = rows.chosen(table({"press_rank": values}), {"press_rank": rows.between(low, high)})
    assert passed == [
        place for place, value in enumerate(values) if value is not None and low <= value <= high
    ]


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=12), st.booleans(), st.booleans())
def test_rows_are_sorted_by_several_columns_with_missing_values_last(
    pairs: list[tuple[float | None, float | None]], first_down: bool, second_down: bool
) -> None:
    content = table({"a": [first for first, _ in pairs], "b": [second for _, second in pairs]})
    order = [
        {"colId": "a", "sort": "desc" if first_down else "asc"},
        {"colId": "b", "sort": "desc" if second_down else "asc"},
    ]

    def key(place: int) -> list[tuple[bool, float]]:
        signs = zip(pairs[place], (first_down, second_down), strict=True)
        return [
            (value is None, (-value if down else value) if value is not None else 0.0)
            for value, down in signs
        ]

    # Python's sort keeps the order of equal rows, as the table does.
    assert rows.chosen(content, {}, order) == sorted(range(len(pairs)), key=key)


@pytest.mark.parametrize(
    ("wanted", "passed"),
    [
        ({"filterType": "text", "type": "contains", "filter": "C=2"}, [1, 2]),
        ({"filterType": "text", "type": "notContains", "filter": "c=2"}, [0, 3]),
        ({"filterType": "text", "type": "startsWith", "filter": "gss"}, [0, 1, 2]),
        ({"filterType": "text", "type": "endsWith", "filter": "k=3"}, [2]),
        ({"filterType": "text", "type": "equals", "filter": "softmax"}, [3]),
        ({"filterType": "text", "type": "notEqual", "filter": "softmax"}, [0, 1, 2]),
        ({"type": "blank"}, []),
        ({"type": "notBlank"}, [0, 1, 2, 3]),
        (
            {
                "operator": "AND",
                "conditions": [
                    {"filterType": "text", "type": "contains", "filter": "c=2"},
                    {"filterType": "text", "type": "contains", "filter": "k=1"},
                ],
            },
            [1],
        ),
        (
            {
                "operator": "OR",
                "conditions": [
                    {"filterType": "text", "type": "contains", "filter": "c=1"},
                    {"filterType": "text", "type": "contains", "filter": "softmax"},
                ],
            },
            [0, 3],
        ),
    ],
)
def test_names_are_filtered_by_text_whatever_their_case(
    wanted: dict[str, Any], passed: list[int]
) -> None:
    content = table({"a": [1, 2, 3, 4]}, ["gss c=1 k=1", "gss c=2 k=1", "gss c=2 k=3", "softmax"])
    assert rows.chosen(content, {"name": wanted}) == passed


@pytest.mark.parametrize(
    ("kind", "passed"),
    [
        ("equals", [2]),
        ("notEqual", [0, 3]),
        ("lessThan", [0]),
        ("lessThanOrEqual", [0, 2]),
        ("greaterThan", [3]),
        ("greaterThanOrEqual", [2, 3]),
        ("blank", [1]),
        ("notBlank", [0, 2, 3]),
    ],
)
def test_numbers_are_compared_as_numbers(kind: str, passed: list[int]) -> None:
    content = table({"a": [9, None, 10, 11.5]})
    assert (
        rows.chosen(content, {"a": {"filterType": "number", "type": kind, "filter": 10}}) == passed
    )


def test_a_page_shows_the_columns_that_it_names_and_no_long_texts() -> None:
    content = table(
        {"press_rank": [1, 2], "top_k even 1": ["x" * 101, None], "test_perplexity": [1 / 3, None]}
    )
    fields = [column["field"] for column in rows.columns(content)]
    assert fields == ["name", "state", "test_perplexity", "press_rank", "attempt", "cause"]
    first, second = rows.records(content, [0, 1], "v w")
    assert first == {
        "id": content.ids[0],
        "name": "[trial 0](/trial/000000000000?study=v+w)",
        "state": "done",
        "test_perplexity": 0.33333,
        "press_rank": 1,
        "attempt": 1,
        "cause": None,
    }
    assert second["test_perplexity"] is None


@pytest.mark.parametrize(
    "drawn",
    [
        {
            "selections": [
                {"x0": 9, "x1": 8, "y0": 7, "y1": 7},
                {"x0": 5, "x1": 2, "y0": -1, "y1": 3},
            ]
        },
        {
            "selections[0].x0": 2,
            "selections[0].x1": 5,
            "selections[0].y0": 3,
            "selections[0].y1": -1,
        },
    ],
)
def test_a_box_is_a_range_of_both_axes(drawn: dict[str, Any]) -> None:
    content = table({"x": [1], "y": [2]})
    assert box_filter(content, drawn, "x", "y") == {
        "x": rows.between(2, 5),
        "y": rows.between(-1, 3),
    }
    assert box_filter(content, drawn, "gone", "y") == {"y": rows.between(-1, 3)}


@given(
    st.lists(st.sampled_from(["gss", "none", "0.1", 0.1, None])), st.floats(-1, 5), st.floats(0, 5)
)
def test_a_box_over_an_axis_of_texts_passes_the_texts_whose_places_are_in_it(
    others: list[Any], low: float, width: float
) -> None:
    values = ["mos", *others]
    content = replace(table({"y": [1] * len(values)}), settings={"x": values})
    levels = list(dict.fromkeys(str(value) for value in values if value is not None))
    inside = {level for place, level in enumerate(levels) if low <= place <= low + width}
    drawn = {"selections": [{"x0": low, "x1": low + width, "y0": 0, "y1": 2}]}
    passed = rows.chosen(content, box_filter(content, drawn, "x", "y"))
    assert passed == [
        place for place, value in enumerate(values) if value is not None and str(value) in inside
    ]


def test_a_range_of_numbers_passes_no_text_and_is_no_error() -> None:
    assert rows.chosen(table({"a": [1, "none", 0.5, None]}), {"a": rows.between(0, 2)}) == [0, 2]


def test_an_odd_filter_passes_all_or_none_and_is_no_error() -> None:
    content = table({"a": [1, None, 3]})
    for wanted in (
        {"type": "inRange", "filter": 2},
        {"type": "inRange", "filter": 2, "filterTo": None},
    ):
        assert rows.chosen(content, {"a": wanted}) == [2]
    assert rows.chosen(content, {"a": {"filterType": "number", "type": "equals"}}) == [0, 2]
    assert rows.chosen(
        content, {"gone": {"type": "equals", "filter": 1}}, [{"colId": "gone", "sort": "asc"}]
    ) == [
        0,
        1,
        2,
    ]


def test_names_are_words_and_no_markdown() -> None:
    (row,) = rows.records(table({"a": [1]}, ["<b>[x](y) *z*"]), [0], "v")
    assert row["name"].startswith("[\\<b\\>\\[x\\]\\(y\\) \\*z\\*](/trial/")


def test_no_box_filters_nothing() -> None:
    content = table({"x": [1], "y": [2]})
    assert box_filter(content, {"selections": []}, "x", "y") == {}
    assert box_filter(content, {"selections": [{"path": "M1,2L3,4Z"}]}, "x", "y") == {}


def test_a_table_of_many_trials_is_paged_without_a_gap() -> None:
    values = list(range(1000))
    random.Random(1).shuffle(values)
    content = table({"a": values})
    order = [{"colId": "a", "sort": "desc"}]
    pages = [rows.chosen(content, {}, order)[start : start + 50] for start in range(0, 1000, 50)]
    assert [values[place] for page in pages for place in page] == list(range(999, -1, -1))
