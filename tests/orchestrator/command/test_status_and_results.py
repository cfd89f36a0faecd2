from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from orchestrator.command.status import CAUSES_SHOWN
from orchestrator.report import write_archive
from orchestrator.store import PlannedTrial, Store, StudyKey
from tests.orchestrator.command.conftest import Typed
from tests.support.store_rows import RUN, SPECTRUM, fail, ids, outcome, plan
from trainables.config import CorpusConfig, GssConfig, TrialConfig

KEY = StudyKey(study="bends", scale="quick", corpus="pydocs")
ESCAPE = "\x1b[2J\x1b]0;owned\x07"


def bends(*seeds: int) -> list[PlannedTrial]:
    corpus = CorpusConfig(name="pydocs", sha256="0" * 64)
    layers = (GssConfig(c=0.0, k=2.0), GssConfig(c=1.0, k=2.0))
    configs = [
        TrialConfig(seed=seed, corpus=corpus, output_layer=layer)
        for layer in layers
        for seed in seeds
    ]
    return [PlannedTrial.of(config, f"bend seed={config.seed}") for config in configs]


def test_status_names_failures_and_causes(store: Store, typed: Typed) -> None:
    trials = bends(*range(15))
    store.register(KEY, trials)
    run_id = store.begin_run(RUN)
    assert "Without a result" not in typed("status").stdout
    for letter, trial in zip("abc", trials, strict=False):
        cause = f"RuntimeError: [bold]no[/bold]\n{ESCAPE}cause {letter}"
        fail(store, trial.trial_id, cause=cause, run_id=run_id)
    output = typed("status").stdout
    assert all(f"[bold]no[/bold] ?[2J?]0;owned?cause {letter}" in output for letter in "abc")
    assert all(trial.trial_id[:12] in output and trial.name in output for trial in trials[:3])
    assert "more" not in output and "\x1b" not in output and "\x07" not in output
    for number, trial in enumerate(trials[3:]):
        fail(store, trial.trial_id, cause="x" * (100_000 + number), run_id=run_id)
    output = typed("status", "bends").stdout
    assert output.count("1 trial failed: ") == CAUSES_SHOWN
    assert f"and {30 - CAUSES_SHOWN} more" in output and len(output) < 40_000
    assert (
        json.loads(typed("status", "--format", "json").stdout)["studies"][0]["counts"]["failed"]
        == 30
    )


def test_equal_causes_are_one_group(store: Store, typed: Typed) -> None:
    trials = bends(*range(10))
    store.register(KEY, trials)
    run_id = store.begin_run(RUN)
    for number, trial in enumerate(trials[:12]):
        store.claim([trial.trial_id], owner="me", lease_s=600)
        host = "node7, GPU 3" if number else "node8"
        store.record_starts({trial.trial_id: host}, attempts={trial.trial_id: 1})
        line = 3 if number else 8
        cause = f"RuntimeError: {number} of 0x7f{number:010x} (model.py, line {line})"
        fail(store, trial.trial_id, cause=cause, run_id=run_id, attempt=1)
    store.record(outcome(trials[12].trial_id, state="diverged"), run_id=run_id, spectrum=None)
    lines = typed("status").stdout.splitlines()
    (first,) = (number for number, line in enumerate(lines) if "trials failed" in line)
    assert "11 trials failed on node7, GPU 3: RuntimeError: " in lines[first]
    assert "model.py, line 3" in lines[first] and "and 8 more" in lines[first + 1]
    assert "1 trial failed on node8: RuntimeError: 0 of 0x7f" in "\n".join(lines[first + 2 :])
    assert "1 trial diverged: " in "\n".join(lines[first + 2 :])


def test_diverged_trial_gets_no_retry(store: Store, typed: Typed) -> None:
    first, second = bends(1)
    store.register(KEY, [first, second])
    run_id = store.begin_run(RUN)
    store.record(outcome(first.trial_id, state="diverged"), run_id=run_id, spectrum=None)
    output = typed("status").stdout
    assert "other settings" in output and "retry" not in output
    fail(store, second.trial_id, cause="a cause", run_id=run_id)
    assert "retry STUDY" in typed("status").stdout


def test_results_have_setting_hashes(store: Store, typed: Typed) -> None:
    trials = bends(1, 2, 3)
    store.register(KEY, trials)
    output = typed("results", "bends", "--format", "csv").stdout
    every = list(csv.DictReader(io.StringIO(output)))
    assert [row["trial_id"] for row in every] == [trial.trial_id for trial in trials]
    assert [row["output_layer.c"] for row in every] == ["0.0"] * 3 + ["1.0"] * 3
    hashes = [row["setting"] for row in every]
    assert len(set(hashes[:3])) == len(set(hashes[3:])) == 1 and hashes[0] != hashes[3]


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (("status", "bend"), "bends"),
        (("results", "bend"), "bends"),
        (("results", "bends", "--scale", "paper"), "scale paper"),
    ],
)  # fmt: skip
def test_unknown_trial_or_study_is_refused(
    words: tuple[str, ...], word: str, store: Store, typed: Typed
) -> None:
    store.register(KEY, bends(1))
    answer = typed(*words)
    assert answer.returncode == 2 and word in answer.stderr


PAGE = "reports/bends-quick-pydocs/report.html"


def test_report_all_covers_this_folder(
    store: Store, typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store.register(KEY, bends(1))
    store.record(outcome(bends(1)[0].trial_id), run_id=store.begin_run(RUN), spectrum=SPECTRUM)
    assert "bends.py" in typed("report", "all").stderr
    study = "from search_spaces.catalog import load_study\nfrom search_spaces.study import Study\n"
    study += "STUDY = Study(name='bends', trials=load_study('gss_grid').trials)\n"
    Path("bends.py").write_text(study)
    assert PAGE in typed("report", "all").stdout
    assert " ./bends.py --scale quick" in (tmp_path / PAGE).read_text()
    [summary] = json.loads(typed("report", "bends.py", "--format", "json").stdout)["reports"]
    assert summary["study"] == "bends"
    assert summary["findings"][0]["verdicts"][0]["verdict"] == "not measured"


def test_archive_equals_the_store(store: Store, tmp_path: Path) -> None:
    first, second = ids(plan(2))
    store.register(KEY, plan(2))
    others = replace(KEY, study="others")
    store.register(others, [*plan(1), *bends(1)])
    store.claim([first], owner="me", lease_s=600)
    recorded = outcome(first)
    store.record(recorded, run_id=store.begin_run(RUN), spectrum=SPECTRUM)
    for key, trial_ids in {KEY: [first, second], others: [first, *ids(bends(1))]}.items():
        write_archive(store, key, tmp_path)
        trials, epochs, spectra = (
            pd.read_parquet(tmp_path / f"{name}.parquet")
            for name in ("trials", "epochs", "spectra")
        )
        assert list(trials.study) == [key.study] * len(trial_ids)
        assert list(trials.trial_id) == trial_ids
        numbers = trials[["test_perplexity", "press_rank", "output_layer.k"]]
        assert numbers.to_numpy()[0].tolist() == [123.456789012345678, 402, 1e-7]
        assert trials.press_rank.isna().sum() == len(trial_ids) - 1
        assert list(epochs.trial_id) == [first] * 3 and list(epochs.epoch) == [1, 2, 3]
        assert list(epochs.train_loss) == [epoch.train_loss for epoch in recorded.model_epochs]
        np.testing.assert_allclose(epochs.valid_perplexity, np.exp(5.25))
        assert (
            list(spectra.trial_id) == [first]
            and spectra.singular_values[0].tolist() == SPECTRUM.tolist()
        )


def test_archive_may_be_empty(store: Store, tmp_path: Path) -> None:
    store.register(KEY, plan(1))
    write_archive(store, KEY, tmp_path)
    for name in ("epochs", "spectra"):
        assert len(pd.read_parquet(tmp_path / f"{name}.parquet")) == 0
