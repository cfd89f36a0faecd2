"""Pages come back by themselves after trouble, and follow what they show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dash import Dash, no_update

from orchestrator.report import trial_pages
from orchestrator.report.index import CARD_FILE, Card
from orchestrator.report.paths import RUN_ALONE
from orchestrator.store.records import StudyKey
from orchestrator.store.store import Store
from orchestrator.view import parts, study_chosen
from orchestrator.view import source as source_module
from orchestrator.view.app import make_app
from orchestrator.view.choices import AXES, MAP
from orchestrator.view.figure import figure_of
from orchestrator.view.source import Source
from tests.support.store_rows import RUN, epoch, ids, outcome, plan

MINE = StudyKey(study="mine", scale="smoke", corpus="pydocs")


@pytest.fixture
def app(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dash:
    """Pages, which read at every call, over a study of one's own with two trials."""
    monkeypatch.setattr(source_module, "FRESH_S", -1.0)
    store.register(MINE, plan(2))
    return make_app(Source(str(tmp_path / "results.db"), str(tmp_path)), "token", 1)


def callback(app: Dash, output: str) -> Callable[..., Any]:
    """The function that makes this output."""
    (found,) = [
        made for name, made in app.callback_map.items() if output in name.strip(".").split("...")
    ]
    function: Callable[..., Any] = found["callback"].__wrapped__
    return function


def follow(app: Dash, version: str) -> dict[str, Any]:
    """What a tick of a study's page changes."""
    shown = {
        "version": version,
        "epochs": 0,
        "values": dict.fromkeys(AXES),
        "map_values": dict.fromkeys(MAP),
    }
    made = callback(app, "study-version.data")(_=1, variant=MINE.variant, shown=shown)
    assert isinstance(made, dict)
    return made


def test_a_page_opened_while_the_store_is_away_asks_again_until_it_is_there(
    app: Dash, tmp_path: Path
) -> None:
    page = callback(app, "page.children")
    start = ids(plan(1))[0]
    for path, search in (
        (f"/study/{MINE.variant}", ""),
        (f"/trial/{start}", ""),
        ("/compare", "?trial=a&trial=b"),
    ):
        away = (tmp_path / "results.db").rename(tmp_path / "away.db")
        (trouble, _), asks_no_more = page(path, search, None)
        assert (
            not asks_no_more
            and "results.db" in trouble.children
            and "comes back by itself" in trouble.children
        )
        assert "command again" not in trouble.children and "run a study" not in trouble.children
        away.rename(tmp_path / "results.db")
        content, asks_no_more = page(path, search, 1)
        assert (
            asks_no_more == (path != "/compare")
            or "no trials whose id begins with" in content[0].children
        )


def test_an_open_page_draws_all_again_after_trouble(app: Dash, tmp_path: Path) -> None:
    version = follow(app, "")["version"]
    assert follow(app, version)["version"] is no_update
    away = (tmp_path / "results.db").rename(tmp_path / "away.db")
    assert follow(app, version)["version"] == ""
    assert follow(app, "")["version"] is no_update, "which would draw at every tick"
    away.rename(tmp_path / "results.db")
    assert follow(app, "")["version"] == version


def test_a_cleared_colour_stays_cleared_where_a_trial_ends(app: Dash, store: Store) -> None:
    trials = [*plan(1, group="mos"), *plan(1, group="gss")]
    store.register(MINE, trials)
    trial_ids = ids(trials)
    store.claim(trial_ids, owner="a", lease_s=60)
    store.record(outcome(trial_ids[0]), run_id=store.begin_run(RUN), spectrum=None, attempt=1)
    values = follow(app, "")["values"]
    assert (values["x"], values["y"]) == ("press_rank", "test_perplexity")
    assert (values["colour"], values["size"]) == (no_update, no_update)


def test_a_page_comes_with_its_first_curves_which_are_drawn_again_where_something_changed(
    app: Dash, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        parts, "set_props", lambda *_: None
    )  # which only a server's callback may call
    trial_ids = ids(plan(2))
    attempts = store.claim(trial_ids, owner="a", lease_s=60)
    store.record_epochs({trial_ids[0]: [epoch(1)]}, attempts=attempts)
    content, _ = callback(app, "page.children")(f"/study/{MINE.variant}", "", None)
    assert content["chosen"].children.id == "chosen-figure" and content["chosen-words"].children
    choice = {
        "tab": content["chosen-tab"].value,
        "scale": content["spectra-scale"].value,
        "ticked": None,
        "filters": None,
        **{name: content[f"map-{name}"].value for name in MAP},
        "y": content["study-y"].value,
        "version": content["study-version"].data,
        "epochs": content["study-epochs"].data,
        "answered": None,
        "form": "png",
    }
    draw, drawn = callback(app, "chosen.children"), content["chosen-drawn"].data
    assert draw({**choice, "ticked": [], "filters": {}}, MINE.variant, drawn) == (no_update,) * 5
    for change in (
        {"tab": "spectra"},
        {"ticked": [{"id": trial_ids[1]}]},
        {"epochs": 2},
        {"form": "svg"},
    ):
        assert draw({**choice, **change}, MINE.variant, drawn)[4] not in (no_update, drawn), change


def test_title_question_answer_and_link_come_with_the_report(app: Dash, tmp_path: Path) -> None:
    answer = callback(app, "study-answer.children")
    before = follow(app, "")
    assert (before["heading"], before["question"], [link.children for link in before["links"]]) == (
        "mine",
        "",
        ["CSV", "JSON"],
    )
    _, shown = answer(1, MINE.variant, None)
    folder = tmp_path / "reports" / MINE.variant
    folder.mkdir(parents=True)
    (folder / "report.html").touch()
    card = Card(
        title="My title",
        variant="",
        question="Does it?",
        scale="smoke",
        trials="2",
        findings=("It does.",),
    )
    (folder / CARD_FILE).write_text(card.model_dump_json())
    after = follow(app, "")
    assert (after["heading"], after["question"]) == ("My title", "Does it?")
    assert [link.children for link in after["links"]] == ["Report", "CSV", "JSON"]
    said, shown = answer(2, MINE.variant, shown)
    assert said == "It does."
    assert answer(3, MINE.variant, shown) == (no_update, no_update)


def test_trials_side_by_side_are_followed(app: Dash, store: Store, tmp_path: Path) -> None:
    show = callback(app, "compare-curves.children")
    trial_ids = ids(plan(2))
    *_, version, trouble = show(1, "linear", "png", [trial_ids, MINE.variant], None)
    assert (
        trouble == ""
        and show(2, "linear", "png", [trial_ids, MINE.variant], version)[4] is no_update
    )
    attempts = store.claim(trial_ids, owner="a", lease_s=60)
    store.record_epochs({trial_ids[0]: [epoch(1)]}, attempts=attempts)
    settings, curves, *_, now, _ = show(3, "linear", "png", [trial_ids, MINE.variant], version)
    assert now != version and curves.id == "compare-learning-curves" and "running" in str(settings)
    (tmp_path / "results.db").rename(tmp_path / "away.db")
    *kept, trouble = show(4, "linear", "png", [trial_ids, MINE.variant], now)
    assert kept == [no_update] * 5 and "comes back by itself" in trouble.children


def test_trials_side_by_side_are_those_of_the_study_that_one_comes_from(
    app: Dash, store: Store
) -> None:
    second = StudyKey(study="second", scale="smoke", corpus="pydocs")
    trials = [
        replace(trial, name=f"of the second {number}") for number, trial in enumerate(plan(2))
    ]
    store.register(second, trials)
    ticked = [{"id": trial_id} for trial_id in ids(trials)]
    _, address = callback(app, "compare.href")(ticked, second.variant)
    path, _, query = address.partition("?")
    content, _ = callback(app, "page.children")(path, f"?{query}", None)
    back, *files = next(
        part for part in content.children if getattr(part, "className", "") == "actions"
    ).children
    assert back.href == parts.study_address(second)
    assert [link.href.partition("?")[0] for link in files] == [
        f"/download/study/{second.variant}.{form}" for form in ("csv", "json")
    ]
    show = callback(app, "compare-curves.children")
    settings, *_ = show(1, "linear", "png", content["compared"].data, None)
    head = settings.children.children[0].children.children[1:]
    assert [cell.children.children for cell in head] == ["of the second 0", "of the second 1"]
    assert all(cell.children.href.endswith(f"?study={second.variant}") for cell in head)


def test_a_trial_is_run_alone_by_the_command_that_a_report_says(app: Dash) -> None:
    (trial_id,) = ids(plan(1))
    _, _, _, rest, *_ = callback(app, "trial-rest.children")(
        1, "linear", "png", [trial_id, MINE.variant], None
    )
    template = Path(trial_pages.__file__).parent / "templates" / "trial.html.j2"
    assert RUN_ALONE in str(rest) and "{{ run_alone }}" in template.read_text()


@pytest.mark.parametrize(
    ("has_end", "words"), [(True, "It is being computed."), (False, "as soon as a trial is done")]
)
def test_published_values_are_said_to_be_computed_once_a_trial_has_ended(
    has_end: bool, words: str
) -> None:
    assert words in study_chosen._beside_papers(None, has_end=has_end).children


def test_what_is_no_outage_is_said_as_it_is(app: Dash) -> None:
    (trouble, _), asks_no_more = callback(app, "page.children")("/none", "", None)
    assert trouble.children == "there is no page /none" and not asks_no_more


def test_a_graph_that_is_shown_keeps_its_axes_and_another_one_takes_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    changed: dict[str, Any] = {}
    monkeypatch.setattr(parts, "set_props", changed.__setitem__)
    figure = figure_of([{"x": [1, 2]}], x="epoch", y="perplexity")
    axes = figure["layout"]["uirevision"]
    assert (
        parts.graph_again("curve", figure, config={}, shown={"curve": "other axes"}).figure
        == figure
    )
    assert changed == {}
    assert parts.graph_again("curve", figure, config={}, shown={"curve": axes}) is no_update
    operations = changed["curve"]["figure"].to_plotly_json()["operations"]
    places = [operation["location"] for operation in operations]
    assert ["data"] in places and not any(
        "range" in place or place[-1:] == ["layout"] for place in places
    )
