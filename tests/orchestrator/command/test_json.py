"""Compares the documents that commands print with the tables of docs/json.md."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from orchestrator.store import PlannedTrial, Store
from orchestrator.watch import JsonLines
from orchestrator.words import json_document
from tests.support.command import sweep
from tests.support.json_page import EVERY_EVENT, KEYS, check, documented
from tests.support.store_rows import KEY, RUN, SPECTRUM, epoch, fail, outcome, plan
from trainables.config import CorpusConfig, GssConfig, TrialConfig

NUMBER = 3
CAUSE = "RuntimeError: no memory"


@pytest.fixture
def filled(store: Store, tmp_path: Path) -> Path:
    corpus = CorpusConfig(name="pydocs", sha256="0" * 64)
    configs = [
        TrialConfig(seed=seed, corpus=corpus, output_layer=GssConfig(c=0.0, k=2.0))
        for seed in range(NUMBER)
    ]
    done, failed, running = (PlannedTrial.of(one, f"gss seed={one.seed}") for one in configs)
    store.register(KEY, [done, failed, running])
    run_id = store.begin_run(RUN)
    for trial in (done, failed, running):
        store.claim([trial.trial_id], owner="driver:1:2:3", lease_s=600)
        store.record_starts({trial.trial_id: "node7, GPU 3"}, attempts={trial.trial_id: 1})
    store.record_epochs({running.trial_id: [epoch(1)]}, attempts={running.trial_id: 1})
    store.record(outcome(done.trial_id), run_id=run_id, spectrum=SPECTRUM, attempt=1)
    fail(store, failed.trial_id, cause=CAUSE, run_id=run_id, attempt=1)
    return tmp_path


def printed(*words: str | Path) -> str:
    answer = sweep(*words, "--format", "json")
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_status_has_running_trials_and_causes(filled: Path) -> None:
    document = check(printed("status", "--storage", filled), "status")
    assert document["studies"][0]["counts"]["done"] == 1
    (running,), (lost,) = document["running"], document["lost"]
    assert (running["host"], running["epoch"]) == ("node7, GPU 3", 1)
    assert running["metrics"]["valid_perplexity"] == pytest.approx(np.exp(5.25))
    assert (lost["state"], lost["cause"]) == ("failed", CAUSE)
    planned_at = datetime.fromisoformat(document["studies"][0]["planned_at"])
    assert planned_at.utcoffset() == timedelta(0)
    assert abs(datetime.now(UTC) - planned_at) < timedelta(minutes=5)


def test_show_prints_one_trial(filled: Path, store: Store) -> None:
    rows = store.results(KEY)
    document = check(printed("show", rows[0]["trial_id"][:12], "--storage", filled), "trial")
    assert document["trial_id"] == rows[0]["trial_id"] and document["config"]["seed"] == 0
    assert document["metrics"]["press_rank"] == 402
    assert document["measurements"]["spectrum@1"]["press_rank"] == 402
    assert [point["epoch"] for point in document["epochs"]] == [1, 2, 3]
    assert document["folder"].endswith(f"/{rows[0]['trial_id']}")
    text = sweep("show", "gss seed=1", "--storage", filled).stdout
    assert "state: failed\n" in text and CAUSE in text and "config.output_layer.k: 2.0\n" in text


@pytest.mark.parametrize(("trial", "words"), [("zz", "no trial"), ("", "and 1 more")])
def test_show_refuses_all_but_one(filled: Path, store: Store, trial: str, words: str) -> None:
    store.register(KEY, plan(6))
    answer = sweep("show", trial, "--storage", filled)
    assert answer.returncode == 2 and words in answer.stderr and answer.stderr.count("\n") == 1


def test_names_of_several_trials_are_refused(filled: Path, store: Store) -> None:
    ids = [trial.trial_id[:12] for trial in plan(2)]
    trials = [replace(trial, name="twin") for trial in plan(2)]
    store.register(KEY, trials)
    answer = sweep("show", "twin", "--storage", filled)
    assert answer.returncode == 2 and all(one in answer.stderr for one in ids)


def test_other_documents_have_their_keys(filled: Path) -> None:
    for words, kind in {
        ("status", "--sizes"): "sizes",
        ("results", "gss_grid"): "results",
        ("report", "gss_grid"): "report",
        ("gss_grid", "--scale", "smoke", "--dry-run"): "plan",
    }.items():
        check(printed(*words, "--storage", filled), kind)
    check(printed("studies"), "studies")
    np.save(filled / "matrix.npy", np.eye(4))
    check(printed("rank", filled / "matrix.npy"), "rank")


def test_events_have_their_keys(capsys: pytest.CaptureFixture[str]) -> None:
    events, name = JsonLines(KEY), "gss seed=1"
    events.event("study_begun", {"trials": 2, "missing": 1})
    events.started("ab", name, 3)
    events.epoch("ab", epoch(1, valid_loss=800.0))
    events.finished(name, outcome("ab", state="diverged"))
    events.stopped("ab", name)
    events.event("report_written", {"page": Path("report.html")})
    events.event("study_ended", {"exit_status": 1})
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["kind"] for line in lines] == [*KEYS][-len(lines) :]
    for line in lines:
        kind = line["kind"]
        assert {*documented(dict(line), kind)} == KEYS[kind] | EVERY_EVENT
    assert lines[2]["metrics"]["valid_perplexity"] is None
    assert lines[3]["state"] == "diverged" and lines[3]["cause"]


def test_values_that_json_cannot_hold() -> None:
    moment = datetime(2026, 11, 28, 23, tzinfo=UTC)
    content = {"x": [float("nan"), -float("inf")], "t": moment, "p": Path("a"), "s\ud800": "\ud800"}
    document = json.loads(json_document("k", content))
    assert document["x"] == [None, None] and document["s\ud800"] == "\ud800"
    assert (document["t"], document["p"]) == ("2026-11-28T23:00:00Z", "a")
