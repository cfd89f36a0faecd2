from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from orchestrator.store.records import StudyKey
from orchestrator.store.store import Store
from orchestrator.view.one_trial import LOG_LINES, read_trial
from orchestrator.view.source import Source
from tests.support.store_rows import KEY, RUN, SPECTRUM, ids, outcome, plan
from trainables.trial_folder import TrialFolder, trial_directory

OTHER = StudyKey(study="seeds", scale="smoke", corpus="ptb")
AFTER = {
    "next": "stock",
    "probability": 0.25,
    "rank": 1,
    "top": [["stock", 0.25], ["market", 0.125]],
}


@pytest.fixture
def source(store: Store, tmp_path: Path) -> Source:
    trials = plan(3)
    store.register(KEY, trials)
    store.register(OTHER, trials[:1])
    run_id = store.begin_run(RUN)
    store.claim(ids(trials), owner="a", lease_s=60)
    measurements = {
        "top_k@1": {"top_k even 1": json.dumps({**AFTER, "context": "shares of the"})},
        "top_k-12345678@1": {"top_k-12345678 mine 2": json.dumps(AFTER)},
        "spectrum@1": {"press_rank": 3, "zebra": 1},
        "perplexity@1": {"test_perplexity": 9.5},
    }
    store.record(
        outcome(trials[0].trial_id, measurements=measurements), run_id=run_id, spectrum=SPECTRUM
    )
    failed = outcome(trials[1].trial_id, state="failed", cause="no memory", measurements={})
    store.record(failed, run_id=run_id, spectrum=None, attempt=1)
    return Source(str(tmp_path / "results.db"), str(tmp_path))


def test_predicted_words_are_no_metrics(source: Source) -> None:
    trial = read_trial(source, plan(1)[0].trial_id)
    assert list(trial.metrics) == ["test_perplexity", "press_rank", "zebra"]
    assert {name: (after.context, after.top[0]) for name, after in trial.predictions.items()} == {
        "top_k even 1": ("shares of the", ("stock", 0.25)),
        "top_k-12345678 mine 2": ("", ("stock", 0.25)),
    }


def test_trial_is_compared_within_study(
    source: Source,
) -> None:
    start = plan(1)[0].trial_id[:12]
    for variant, varying in (("", ["seed"]), (OTHER.variant, []), ("no such study", ["seed"])):
        assert read_trial(source, start, variant).varying_settings == varying
    trial = read_trial(source, start)
    assert trial.settings["seed"] == 0 and list(trial.keys) == [KEY, OTHER]


@pytest.mark.timeout(30)
def test_pages_skip_silent_object_store(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.register(KEY, plan(1))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "x")
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        source = Source(str(tmp_path / "results.db"), "s3://bucket/runs")
        assert [read_trial(source, plan(1)[0].trial_id).log for _ in range(3)] == [""] * 3
        silent.settimeout(20)
        silent.accept()[0].close()


def test_failed_trials_log_is_shown(source: Source, tmp_path: Path) -> None:
    trial_id = plan(2)[1].trial_id
    assert read_trial(source, trial_id).log == ""
    folder = TrialFolder(trial_directory(tmp_path, trial_id), trial_id)
    folder.path.mkdir(parents=True)
    folder.error_log.write_bytes(
        b"\xff first\n" + b"".join(b"line %d\n" % number for number in range(5000))
    )
    lines = read_trial(source, trial_id).log.splitlines()
    assert lines == [f"line {number}" for number in range(5000 - LOG_LINES, 5000)]
    assert read_trial(source, plan(1)[0].trial_id).log == ""
