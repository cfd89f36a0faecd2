"""When the answers to a study's questions are computed, and that looking at a sweep does not do it
all the time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.report.index import CARD_FILE, Card
from orchestrator.store import Store, open_store
from orchestrator.view.answers import AGAIN_S, Answers, AnswersBehind
from orchestrator.view.app import make_app
from orchestrator.view.source import Source
from tests.support.command import wait_for
from tests.support.store_rows import KEY, RUN, outcome, plan
from trainables.errors import UserError


def test_nothing_is_computed_before_a_trial_has_ended(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'results.db'}"
    with open_store(url) as store:
        first = plan(2)[0].trial_id
        store.register(KEY, plan(2))
        store.claim([first], owner="a:1:1", lease_s=600)
        source = Source(url, str(tmp_path))
        assert source.answers(KEY) is None
        assert not source._answers._asked
        store.record(outcome(first), run_id=store.begin_run(RUN), spectrum=None)
    source = Source(url, str(tmp_path))
    assert source.answers(KEY) is None
    wait_for(lambda: source.answers(KEY) is not None, timeout_s=240, what="computed")
    answers = source.answers(KEY)
    assert answers is not None and answers.trouble == "" and answers.headline


def get_and_wait(
    behind: AnswersBehind, version: str, *, trials_run: bool = False
) -> Answers | None:
    """What is there now; returns once what that began is computed."""
    shown = behind.get(KEY, {"a": (version,)}, trials_run=trials_run)
    deadline = time.perf_counter() + 10
    while behind._asked and time.perf_counter() < deadline:
        time.sleep(0.001)
    return shown


@pytest.mark.parametrize(("trials_run", "rest_s"), [(False, 20), (True, 100)])
def test_answers_that_took_two_seconds_are_computed_again_after_a_rest(
    monkeypatch: pytest.MonkeyPatch, trials_run: bool, rest_s: float
) -> None:
    """Of the processor, whose clock is slower here than the wall's, as beside a sweep."""
    clock, processor = [1000.0], [5.0]
    calls: list[float] = []
    behind = AnswersBehind("sqlite://")

    def compute(*_: object) -> Answers:
        calls.append(clock[0])
        clock[0] += 7.0
        processor[0] += 2.0
        return Answers(headline=f"{len(calls)}")

    def get(version: str) -> Answers | None:
        return get_and_wait(behind, version, trials_run=trials_run)

    monkeypatch.setattr("orchestrator.view.answers.compute_answers", compute)
    monkeypatch.setattr("orchestrator.view.answers._children_s", lambda: processor[0])
    monkeypatch.setattr("orchestrator.view.answers.time.monotonic", lambda: clock[0])
    assert get("done") is None
    for moment in (1007 + rest_s - 1, 1007 + rest_s + 1):
        clock[0] = moment
        assert get("done") == Answers(headline="1")
    clock[0] = 1007 + rest_s - 1
    get("more are done")
    assert len(calls) == 1
    clock[0] = 1007 + rest_s + 1
    get("more are done")
    assert get("more are done") == Answers(headline="2")
    assert calls == [1000, 1007 + rest_s + 1]
    assert rest_s > AGAIN_S


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize(
    "error", [UserError("the store is away"), RuntimeError("an error of ours")]
)
def test_trouble_passes_after_a_rest_though_no_trial_has_ended(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    clock = [1000.0]
    results: Iterator[Exception | Answers] = iter([error, Answers(headline="There is one.")])
    behind = AnswersBehind("sqlite://")

    def compute(*_: object) -> Answers:
        result = next(results)
        if isinstance(result, Exception):
            raise result
        return result

    monkeypatch.setattr("orchestrator.view.answers.compute_answers", compute)
    monkeypatch.setattr("orchestrator.view.answers.time.monotonic", lambda: clock[0])
    assert get_and_wait(behind, "done") is None
    for moment in (1000 + AGAIN_S - 1, 1000 + AGAIN_S + 1):
        clock[0] = moment
        shown = get_and_wait(behind, "done")
        assert shown is not None and shown.trouble.startswith("the st")
    assert get_and_wait(behind, "done") == Answers(headline="There is one.")


def test_what_the_report_has_found_goes_before_trouble(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.register(KEY, plan(1))
    source = Source(str(tmp_path / "results.db"), str(tmp_path))
    monkeypatch.setattr(source, "answers", lambda _: Answers(trouble="the store is away"))
    made = make_app(source, "token", 1).callback_map[
        "..study-answer.children...study-answered.data.."
    ]
    answer = made["callback"].__wrapped__
    assert answer(1, KEY.variant, None)[0] == "the store is away"
    folder = tmp_path / "reports" / KEY.variant
    folder.mkdir(parents=True)
    card = Card(
        title="", variant="", question="", scale="quick", trials="1", findings=("It does.",)
    )
    (folder / CARD_FILE).write_text(card.model_dump_json())
    assert answer(2, KEY.variant, None)[0] == "It does."
