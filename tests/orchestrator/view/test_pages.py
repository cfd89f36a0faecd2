"""Pages come back by themselves after trouble, and follow what they show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dash import Dash, no_update

from orchestrator.report import CARD_FILE, RUN_ALONE, Card
from orchestrator.store import Store, StudyKey
from orchestrator.view import parts, study_page
from orchestrator.view.app import make_app
from orchestrator.view.axes import MAP
from orchestrator.view.source import Source
from tests.support.store_rows import RUN, epoch, ids, outcome, plan

MINE = StudyKey(study="mine", scale="smoke", corpus="pydocs")
IDS = ids(plan(2))


@pytest.fixture
def app(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dash:
    """Pages, which read at every call, over a study of one's own with two trials."""
    monkeypatch.setattr("orchestrator.view.source.FRESH_S", -1.0)
    store.register(MINE, plan(2))
    return make_app(Source(str(tmp_path / "results.db"), str(tmp_path)), "token", 1)


def callback(app: Dash, output: str) -> Callable[..., Any]:
    """The function that makes this output."""
    (entry,) = [made for name, made in app.callback_map.items() if output in name]
    function: Callable[..., Any] = entry["callback"].__wrapped__
    return function


def open_page(app: Dash, path: str, search: str = "") -> tuple[Any, bool]:
    content, asks_no_more = callback(app, "page.children")(path, search, None)
    return content, asks_no_more


def follow(app: Dash, version: Any) -> tuple[Any, ...]:
    """What a tick of the study's page changes."""
    changes: tuple[Any, ...] = callback(app, "study-head.children")(1, MINE.variant, 0, version)
    return changes


@pytest.mark.parametrize(
    ("path", "search"),
    [
        (f"/study/{MINE.variant}", ""),
        (f"/trial/{IDS[0]}", ""),
        ("/compare", f"?trial={IDS[0]}&trial={IDS[1]}"),
    ],
)
def test_a_page_opened_while_the_store_is_away_comes_back(
    app: Dash, tmp_path: Path, path: str, search: str
) -> None:
    away = (tmp_path / "results.db").rename(tmp_path / "away.db")
    (trouble, _), asks_no_more = open_page(app, path, search)
    assert not asks_no_more and "comes back by itself" in trouble.children
    assert "results.db" in trouble.children and "--store" not in trouble.children
    away.rename(tmp_path / "results.db")
    assert open_page(app, path, search)[1]


def test_a_page_that_does_not_exist_is_a_sentence(app: Dash) -> None:
    for path in ("/none", "/study/none", "/trial/00", "/compare"):
        (trouble, _), asks_no_more = open_page(app, path)
        assert trouble.className == "trouble" and not asks_no_more


def test_an_open_study_is_drawn_again_after_trouble(app: Dash, tmp_path: Path) -> None:
    version = open_page(app, f"/study/{MINE.variant}")[0]["study-version"].data
    assert follow(app, version)[3] is no_update
    path = (tmp_path / "results.db").rename(tmp_path / "away.db")
    trouble, *_, away, _ = follow(app, version)
    assert trouble.className == "trouble" and away != version
    assert follow(app, away)[3] is no_update, "which would draw at every tick"
    path.rename(tmp_path / "results.db")
    assert follow(app, away)[3] == version


def test_an_end_changes_its_row_and_a_first_metric_the_page(
    app: Dash, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: dict[str, Any] = {}
    monkeypatch.setattr(study_page, "set_props", shown.__setitem__)
    version = open_page(app, f"/study/{MINE.variant}")[0]["study-version"].data
    store.claim(IDS, owner="a", lease_s=60)
    *_, version, changes = follow(app, version)
    assert [row["state"] for row in changes["update"]] == ["running", "running"]
    run_id = store.begin_run(RUN)
    store.record(outcome(IDS[0]), run_id=run_id, spectrum=None)
    assert follow(app, version) == (no_update,) * 5
    page = shown["page"]["children"]
    assert page["study-y"].value == "test_perplexity" and page["study-x"].value == "press_rank"
    store.record(outcome(IDS[1]), run_id=run_id, spectrum=None)
    *_, changes = follow(app, page["study-version"].data)
    assert [row["id"] for row in changes["update"]] == [IDS[1]]


def test_title_question_and_answer_come_with_the_report(app: Dash, tmp_path: Path) -> None:
    version = open_page(app, f"/study/{MINE.variant}")[0]["study-version"].data
    assert "writes a report" in str(follow(app, version)[0])
    folder = tmp_path / "reports" / MINE.variant
    folder.mkdir(parents=True)
    (folder / "report.html").touch()
    texts = {
        "title": "My title",
        "question": "Does it?",
        "findings": ("It does.", "All done.", "Also."),
    }
    card = Card(variant="", scale="smoke", trials="2", **texts)
    (folder / CARD_FILE).write_text(card.model_dump_json())
    heading, _, question, answer, _, links = follow(app, version)[0]
    assert (heading.children, question.children) == ("My title", "Does it?")
    assert answer.children[0] == "It does. All done." and "UTC" in answer.children[1].children
    assert [link.children for link in links.children] == ["Report", "CSV", "JSON"]


def test_learning_curves_are_of_the_ticked_or_the_best(app: Dash, store: Store) -> None:
    attempts = store.claim(IDS, owner="a", lease_s=60)
    store.record_epochs({trial_id: [epoch(1)] for trial_id in IDS}, attempts=attempts)
    draw = callback(app, '{"drawn":"chosen"}')
    axes = dict.fromkeys(("y", *MAP))
    drawn = [
        draw("learning curves", axes, None, ticked, None, MINE.variant) for ticked in ([], IDS[1:])
    ]
    assert [[trace.name for trace in figure.data][:-1] for figure, *_ in drawn] == [
        ["trial 0", "trial 1"],
        ["trial 1"],
    ]


def test_trials_side_by_side_are_followed(app: Dash, store: Store, tmp_path: Path) -> None:
    show = callback(app, "compare-settings.children")
    trouble, version, *_ = show(1, [IDS, MINE.variant], None)
    assert trouble == "" and show(2, [IDS, MINE.variant], version)[1] is no_update
    attempts = store.claim(IDS, owner="a", lease_s=60)
    store.record_epochs({IDS[0]: [epoch(1)]}, attempts=attempts)
    _, now, settings, curves, *_ = show(3, [IDS, MINE.variant], version)
    assert now != version and "running" in str(settings) and curves.data[0].name == "trial 0"
    (tmp_path / "results.db").rename(tmp_path / "away.db")
    trouble, *kept = show(4, [IDS, MINE.variant], now)
    assert kept == [no_update] * 5 and "comes back by itself" in trouble.children


def test_trials_side_by_side_are_of_the_study_they_come_from(app: Dash, store: Store) -> None:
    second = StudyKey(study="second", scale="smoke", corpus="pydocs")
    trials = [replace(trial, name=f"second {number}") for number, trial in enumerate(plan(2))]
    store.register(second, trials)
    (link,) = study_page._compare(IDS, second.variant)
    path, _, query = link.href.partition("?")
    content, _ = open_page(app, path, f"?{query}")
    assert parts.study_address(second) in str(content)
    assert f"/download/study/{second.variant}.csv" in str(content)
    _, _, settings, *_ = callback(app, "compare-settings.children")(
        1, content["compared"].data, None
    )
    assert all(f"second {number}" in str(settings) for number in (0, 1))


def test_a_trial_is_run_alone_by_one_command(app: Dash) -> None:
    *_, rest = callback(app, "trial-rest.children")(1, [IDS[0], MINE.variant], None)
    assert RUN_ALONE in str(rest)
