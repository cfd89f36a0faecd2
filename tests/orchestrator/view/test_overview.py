"""The overview counts what the store has."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from orchestrator.store.records import STATES, StudySummary
from orchestrator.view.overview import _content
from orchestrator.view.source import Overview
from tests.support.store_rows import KEY


def summary(scale: str, **counts: int) -> StudySummary:
    every = {state: counts.get(state, 0) for state in STATES}
    return StudySummary(key=replace(KEY, scale=scale), planned_at=datetime(2026, 1, 1, tzinfo=UTC), counts=every)


def studies(*summaries: StudySummary) -> list[dict[str, Any]]:
    """The rows of the first table by the titles of its columns; of a progress bar its value and its end."""
    content = _content(Overview(studies=list(summaries), running=[], lost=[], seconds_left={}))
    head, body = content[1].children.children
    titles = [cell.children for cell in head.children.children]
    cells = [[cell.children for cell in row.children] for row in body.children]
    return [dict(zip(titles, [row[0].children, [row[1].value, row[1].max], *row[2:]], strict=True)) for row in cells]


def test_trials_that_were_stopped_early_are_counted_and_fill_the_bar() -> None:
    first, second = studies(summary("quick", done=2), summary("small", done=17, pruned=4, failed=1))
    assert first[""] == ["21", "22"] and second[""] == ["2", "2"]
    assert (first["done"], first["stopped early"], first["trials"], first["without a result"]) == (17, 4, 22, 1)
    assert "small" in first["study"] and second["stopped early"] == 0
    assert "stopped early" not in studies(summary("quick", done=2, planned=3))[0]
