from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from dash import Dash, no_update
from dash.exceptions import PreventUpdate

from orchestrator.report import CARD_FILE, Card
from orchestrator.store import Store, StudyKey, open_store
from orchestrator.view import parts, study_page
from orchestrator.view.app import lay_out, make_app
from orchestrator.view.overview import content
from orchestrator.view.source import Source
from orchestrator.view.trials_page import CONFIG_FILE, RUN_ALONE
from tests.support.postgres import PASSWORD, PostgresServer
from tests.support.store_rows import RUN, SPECTRUM, epoch, ids, outcome, plan, planned
from trainables.config import Goal
from trainables.errors import UserError
from trainables.trial_folder import FinalState, TrialOutcome, UserEpoch

MINE = StudyKey(study="mine", scale="smoke", corpus="pydocs")
IDS = ids(plan(2))
STUDY, TRIAL = f"/study/{MINE.variant}", f"/trial/{IDS[0]}"
COMPARED = ("/compare", f"?trial={IDS[0]}&trial={IDS[1]}")


@pytest.fixture
def source(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Source:
    # Read the store at every call.
    monkeypatch.setattr("orchestrator.view.source.CACHE_S", -1.0)
    store.register(MINE, plan(2))
    return Source(str(tmp_path / "results.db"), str(tmp_path))


@pytest.fixture
def app(source: Source) -> Dash:
    return make_app(source, "token")


def callback(app: Dash, output: str) -> Callable[..., Any]:
    (entry,) = [details for name, details in app.callback_map.items() if output in name]
    function: Callable[..., Any] = entry["callback"].__wrapped__
    return function


def follow(app: Dash, version: Any) -> tuple[Any, ...]:
    changes: tuple[Any, ...] = callback(app, "study-head.children")(1, MINE.variant, 0, version)
    return changes


def show(app: Dash, version: str | None = None, trials: Any = (IDS, MINE.variant)) -> Any:
    return callback(app, "trials-head.children")(1, trials, version)


def post(
    app: Dash, outputs: list[str], values: dict[str, Any], state: dict[str, Any], changed: str
) -> Any:
    browser = app.server.test_client()
    browser.get("/?token=token")

    def listed(properties: dict[str, Any]) -> list[dict[str, Any]]:
        names = [name.split(".") for name in properties]
        return [
            {"id": id_, "property": name, "value": value}
            for (id_, name), value in zip(names, properties.values(), strict=True)
        ]

    is_multiple, targets = len(outputs) > 1, listed(dict.fromkeys(outputs))
    body = {
        "output": f"..{'...'.join(outputs)}.." if is_multiple else outputs[0],
        "outputs": targets if is_multiple else targets[0],
        "inputs": listed(values),
        "state": listed(state),
        "changedPropIds": [changed],
    }
    return browser.post("/_dash-update-component", json=body).json


def test_error_is_shown_until_recovery(app: Dash, tmp_path: Path) -> None:
    def open_page(changed: str) -> Any:
        values = {"address.pathname": STUDY, "address.search": "", "page-tick.n_intervals": 1}
        outputs = ["page.children", "trouble.children", "page-tick.disabled"]
        return post(app, outputs, values, {}, changed)["response"]

    away = (tmp_path / "results.db").rename(tmp_path / "away.db")
    opened = open_page("address.pathname")
    sentence = opened["trouble"]["children"]
    assert "results.db" in sentence and "loads again by itself" in sentence
    assert "--store" not in sentence and opened["page"] == {"children": None}
    retries = {"page-tick": {"disabled": False}}
    assert retries.items() <= opened.items()
    tick = "overview-tick.n_intervals"
    followed = post(app, ["overview.children"], {tick: 1}, {}, tick)
    assert followed["sideUpdate"] == {"trouble": {"children": sentence}, **retries}
    away.rename(tmp_path / "results.db")
    again = open_page("page-tick.n_intervals")
    assert again["trouble"]["children"] == "" and again["page-tick"]["disabled"]
    assert "study-head" in str(again["page"])


def test_pages_hide_database_password(
    postgres_server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.view.source.CACHE_S", -1.0)
    url = postgres_server.url(postgres_server.create_database())
    with open_store(url) as store:
        store.register(MINE, plan(2))
    source = Source(url, str(tmp_path))
    pages = ("/", ""), (STUDY, ""), (TRIAL, ""), COMPARED
    before = [str(lay_out(source, *page))[:200] for page in pages]
    postgres_server.stop()
    try:
        for page in pages:
            with pytest.raises(UserError) as trouble:
                lay_out(source, *page)
            sentence = parts.sentence_of(trouble.value)
            assert "loads again by itself" in sentence and PASSWORD not in sentence
    finally:
        postgres_server.start()
    assert [str(lay_out(source, *page))[:200] for page in pages] == before


@pytest.mark.parametrize("path", ["/none", "/study/none", "/trial/00", "/compare"])
def test_unknown_page_gets_one_sentence(source: Source, path: str) -> None:
    with pytest.raises(UserError):
        lay_out(source, path, "")


def test_ended_trials_update_the_page(
    app: Dash, source: Source, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    properties: dict[str, Any] = {}
    monkeypatch.setattr(study_page, "set_props", properties.__setitem__)
    version = lay_out(source, STUDY, "")["study-version"].data
    assert follow(app, version)[3] is no_update
    store.claim(IDS, owner="a", lease_s=60)
    *_, version, changes = follow(app, version)
    assert [row["state"] for row in changes["update"]] == ["running", "running"]
    run_id = store.begin_run(RUN)
    store.record(outcome(IDS[0]), run_id=run_id, spectrum=None)
    assert follow(app, version) == (no_update,) * 5
    page = properties["page"]["children"]
    assert page["study-y"].value == "test_perplexity" and page["study-x"].value == "press_rank"
    store.record(outcome(IDS[1]), run_id=run_id, spectrum=None)
    *_, changes = follow(app, page["study-version"].data)
    assert [row["id"] for row in changes["update"]] == [IDS[1]]


def test_report_gives_question_and_answer(app: Dash, source: Source, tmp_path: Path) -> None:
    version = lay_out(source, STUDY, "")["study-version"].data
    assert "writes a report" in str(follow(app, version)[0])
    folder = tmp_path / "reports" / MINE.variant
    folder.mkdir(parents=True)
    (folder / "report.html").touch()
    texts = {
        "title": "My title",
        "question": "Does it?",
        "answer": "It does.",
        "certainty": ("All done.", "Also."),
    }
    card = Card(variant="", scale="smoke", trials="2 done", **texts)
    (folder / CARD_FILE).write_text(card.model_dump_json())
    heading, question, answer, _, links = follow(app, version)[0]
    assert (heading.children, question.children) == ("My title", "Does it?")
    assert (
        answer.children[0] == "It does. All done." and "as of 2 done" in answer.children[1].children
    )
    assert [link.children for link in links.children] == ["Report", "CSV", "JSON"]


def test_curves_show_ticked_or_best(app: Dash, store: Store) -> None:
    attempts = store.claim(IDS, owner="a", lease_s=60)
    store.record_epochs({trial_id: [epoch(1)] for trial_id in IDS}, attempts=attempts)
    draw = callback(app, '{"drawn":"chosen"}')
    drawings = [
        draw("learning curves", None, None, selection, None, MINE.variant)
        for selection in ([], IDS[1:])
    ]
    assert [[trace.name for trace in figure.data][:-1] for figure, *_ in drawings] == [
        ["trial 0", "trial 1"],
        ["trial 1"],
    ]


def test_own_metric_orders_trials_and_curves(
    app: Dash, source: Source, store: Store, tmp_path: Path
) -> None:
    """Trial 1 is done with the higher score; trial 0 still runs."""
    attempts = store.claim(IDS, owner="a", lease_s=60)
    points = {
        trial_id: [UserEpoch(epoch=0, seconds=1.0, loss=3.0, score=number + 0.5)]
        for number, trial_id in enumerate(IDS)
    }
    store.record_epochs(points, attempts=attempts)
    measured = {"user@1": {"score": 1.5, "note": "fine"}}
    done = TrialOutcome(
        trial_id=IDS[1], state="done", epochs=tuple(points[IDS[1]]), measurements=measured
    )
    store.record(done, run_id=store.begin_run(RUN), attempt=attempts[IDS[1]])
    assert "loss 3" in str(content(source.overview()))
    folder = tmp_path / "reports" / MINE.variant
    folder.mkdir(parents=True)
    card = Card(variant="", scale="full", trials="", title="", question="", answer="a",
        certainty=("b",), goal=Goal("score", "max"))  # fmt: skip
    (folder / CARD_FILE).write_text(card.model_dump_json())
    draw = callback(app, '{"drawn":"chosen"}')
    figure, words, options, tabs = draw("spectra", None, None, [], None, MINE.variant)
    assert list(tabs) == ["learning curves"], "no trial has a spectrum"
    assert [line.name for line in figure.data[:-1]] == ["trial 1", "trial 0"]
    assert list(figure.data[0].y) == [1.5] and "by score" in words[0]
    assert list(options) == ["loss", "score"]
    figure, *_ = draw("learning curves", "loss", None, IDS, None, MINE.variant)
    assert [list(line.y) for line in figure.data[:-1]] == [[3.0], [3.0]]


def test_settings_have_mean_curves(app: Dash, store: Store) -> None:
    """Setting a has seeds 0 to 3: two done, one pruned, one diverged. Setting b has one seed."""
    draws = np.random.default_rng(0)
    trials = [planned(seed, group="a", name=f"a seed={seed}") for seed in range(4)]
    trials.append(planned(0, group="b", name="b seed=0"))
    store.register(MINE, trials)
    trial_ids, run_id = ids(trials), store.begin_run(RUN)
    attempts = store.claim(trial_ids, owner="a", lease_s=60)
    losses = {id_: draws.uniform(1, 3, size=3) for id_ in trial_ids}
    losses[trial_ids[2]] = losses[trial_ids[2]][:2]
    for id_, values in losses.items():
        points = [epoch(n, valid_loss=loss) for n, loss in enumerate(values, 1)]
        store.record_epochs({id_: points}, attempts=attempts)
        measured = {"perplexity@1": {"valid_perplexity": float(values[-1])}}
        ended = outcome(id_, epochs=0, measurements=measured)
        if id_ in (trial_ids[2], trial_ids[3]):
            state: FinalState = "pruned" if id_ == trial_ids[2] else "diverged"
            ended = outcome(id_, state=state, epochs=0, measurements={})
        ended = ended.model_copy(update={"epochs": tuple(points)})
        store.record(ended, run_id=run_id, spectrum=SPECTRUM, attempt=attempts[id_])
    draw = callback(app, '{"drawn":"chosen"}')
    figure, words, _, tabs = draw("learning curves", None, None, [], None, MINE.variant)
    lines = {line.name: line for line in figure.data if line.fill is None}
    bands = {line.legendgroup: line for line in figure.data if line.fill}
    assert {*bands} == {"a", "b"} and "band" in words[0] and "2 settings" in words[0]
    a, b = (np.exp([losses[id_] for id_ in some]) for some in (trial_ids[:2], trial_ids[4:]))
    pruned = np.exp(losses[trial_ids[2]])
    begun = np.vstack([a[:, :2], pruned])
    np.testing.assert_allclose(lines["a"].y, [*begun.mean(axis=0), a[:, 2].mean()])
    low, high = [*begun.min(axis=0), a[:, 2].min()], [*begun.max(axis=0), a[:, 2].max()]
    np.testing.assert_allclose(bands["a"].y, [*high, *low[::-1]])
    np.testing.assert_allclose(bands["a"].x, [1, 2, 3, 3, 2, 1])
    assert lines["a"].customdata[:, 2].tolist() == [3, 3, 2]
    np.testing.assert_allclose(lines["b"].y, b[0])
    figure, *_ = draw("learning curves", None, None, trial_ids[:2], None, MINE.variant)
    assert [line.name for line in figure.data[:-1]] == ["a seed=0", "a seed=1"]
    np.testing.assert_allclose([line.y for line in figure.data[:-1]], a)
    assert list(tabs) == ["learning curves", "spectra"]
    figure, *_ = draw("spectra", None, None, [], None, MINE.variant)
    assert len(figure.data) == 5 and [*figure.data[0].y] == [*SPECTRUM]


def test_compared_trials_are_updated(app: Dash, store: Store) -> None:
    version, *_ = show(app)
    with pytest.raises(PreventUpdate):
        show(app, version)
    attempts = store.claim(IDS[:1], owner="a", lease_s=60)
    store.record_epochs({IDS[0]: [epoch(1)]}, attempts=attempts)
    now, head, _, curves, *_ = show(app, version)
    assert now != version and "running" in str(head) and curves.data[0].name == "trial 0"


def test_compared_trials_show_only_differences(app: Dash) -> None:
    _, head, *_ = show(app)
    facts, settings, every = str(head[2]), str(head[4]), str(head[-1])
    assert IDS[1] in facts and "state" not in facts and "planned" not in facts
    assert "seed" in settings and "output_layer" not in settings and "output_layer" in every
    _, alone, *_ = show(app, trials=(IDS[:1], MINE.variant))
    assert "state" in str(alone[2]) and "planned" in str(alone[2])


def test_compared_trials_share_the_study(app: Dash, source: Source, store: Store) -> None:
    second = StudyKey(study="second", scale="smoke", corpus="pydocs")
    trials = [replace(trial, name=f"second {number}") for number, trial in enumerate(plan(2))]
    store.register(second, trials)
    (link,) = study_page._compare(IDS, second.variant)
    path, _, query = link.href.partition("?")
    page = lay_out(source, path, f"?{query}")
    _, head, *_ = show(app, trials=page["trials-asked"].data)
    assert all(f"second {number}" in str(head) for number in (0, 1))
    assert f"/study/{second.variant}" in str(head)
    assert f"/download/study/{second.variant}.csv" in str(head)


def test_page_prints_trials_command(app: Dash) -> None:
    *_, page_parts = show(app, trials=(IDS[:1], MINE.variant))
    assert RUN_ALONE in str(page_parts) and quote('"seed": 0') in str(page_parts)
    assert f"download='{CONFIG_FILE}'" in str(page_parts) and CONFIG_FILE in RUN_ALONE.split()
