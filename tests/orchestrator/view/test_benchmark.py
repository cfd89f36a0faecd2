"""The benchmark's viewers notice what a reader would be told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import view
from orchestrator.store import Store
from orchestrator.view import source as source_module
from orchestrator.view.answers import Answers
from orchestrator.view.app import make_app
from orchestrator.view.source import Source
from tests.support.store_rows import KEY, plan
from trainables.errors import UserError

Ask = Callable[..., dict[str, Any]]
ANSWERS = "study-answer.children"
SEEN = {*view.AT_TICK, *set[str]().union(*view.ON_CHANGE.values())} - {ANSWERS}
"""Where a reader sees trouble with the store; the answer stays as it is."""


@pytest.fixture
def source(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Source:
    """Over a store with a study whose first trial has not begun."""
    monkeypatch.setattr(source_module, "FRESH_S", -1.0)
    store.register(KEY, plan(2))
    return Source(str(tmp_path / "results.db"), str(tmp_path))


@pytest.fixture
def ask(source: Source) -> Ask:
    """As a viewer asks for an output of the study's page."""
    browser = make_app(source, "token", 1).server.test_client()
    browser.set_cookie("sweep-view-1", "token")
    made = browser.get("/_dash-dependencies").json
    assert made is not None
    callbacks = {output: callback for callback in made for output in view._outputs(callback)}

    def answer(output: str, variant: str = KEY.variant) -> dict[str, Any]:
        body = view._body(callbacks[output], view.VALUES | {"study-variant.data": variant})
        given = browser.post("/_dash-update-component", data=body, headers=view.HEADERS)
        assert given.status_code in (200, 204)
        return view._changes(given.data)

    return answer


@pytest.mark.parametrize("output", sorted(SEEN))
def test_a_store_that_is_away_is_noticed_and_one_without_results_is_fine(
    ask: Ask, tmp_path: Path, output: str
) -> None:
    assert ask(output)
    (tmp_path / "results.db").rename(tmp_path / "away.db")
    with pytest.raises(UserError, match=r"a viewer was told: .*results\.db.*comes back by itself"):
        ask(output)


def test_statistics_that_cannot_be_had_are_noticed(
    ask: Ask, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ask(ANSWERS) == {}
    trouble = "the statistics of gss_grid cannot be had: database is locked"
    monkeypatch.setattr(source, "answers", lambda _: Answers(trouble=trouble))
    with pytest.raises(UserError, match="database is locked"):
        ask(ANSWERS)


def test_any_other_trouble_is_noticed(ask: Ask) -> None:
    with pytest.raises(UserError, match="a viewer was told: the store has no study 'none'"):
        ask("study-progress.children", "none")
