"""When the answers to a study's questions are computed, and that looking at a sweep does not do it all the time."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from orchestrator.store import open_store
from orchestrator.view.answers import AGAIN_S, Answers, AnswersBehind
from orchestrator.view.source import Source
from tests.support.command import wait_for
from tests.support.store_rows import KEY, RUN, outcome, plan


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
    wait_for(lambda: source.answers(KEY) is not None, timeout_s=60, what="computed")
    answers = source.answers(KEY)
    assert answers is not None and answers.trouble == "" and answers.headline


@pytest.mark.parametrize(("trials_run", "rest_s"), [(False, 20), (True, 100)])
def test_answers_that_took_two_seconds_are_computed_again_after_a_rest(
    monkeypatch: pytest.MonkeyPatch, trials_run: bool, rest_s: float
) -> None:
    clock = [1000.0]
    calls: list[float] = []
    behind = AnswersBehind("sqlite://")

    def compute(*_: object) -> Answers:
        calls.append(clock[0])
        clock[0] += 2.0
        return Answers(headline=f"{len(calls)}")

    def get(version: str) -> Answers | None:
        shown = behind.get(KEY, {"a": (version,)}, trials_run=trials_run)
        deadline = time.perf_counter() + 10
        while behind._asked and time.perf_counter() < deadline:
            time.sleep(0.001)
        return shown

    monkeypatch.setattr("orchestrator.view.answers.compute_answers", compute)
    monkeypatch.setattr("orchestrator.view.answers.time.monotonic", lambda: clock[0])
    assert get("done") is None
    for moment in (1002 + rest_s - 1, 1002 + rest_s + 1):
        clock[0] = moment
        assert get("done") == Answers(headline="1")
    clock[0] = 1002 + rest_s - 1
    get("more are done")
    assert len(calls) == 1
    clock[0] = 1002 + rest_s + 1
    get("more are done")
    assert get("more are done") == Answers(headline="2")
    assert calls == [1000, 1002 + rest_s + 1]
    assert rest_s > AGAIN_S
