"""What `status` says of trials without a result, and how `results` is asked for the trials of one
setting."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from orchestrator.command.app import main
from orchestrator.command.status import CAUSES_SHOWN
from orchestrator.store import PlannedTrial, Store, StudyKey
from tests.support.store_rows import RUN, SPECTRUM, fail, ids, outcome, plan
from trainables.config import CorpusConfig, GssConfig, TrialConfig

KEY = StudyKey(study="bends", scale="quick", corpus="pydocs")
ESCAPE = "\x1b[2J\x1b]0;owned\x07"


def bends(*seeds: int) -> list[PlannedTrial]:
    """Two settings, these seeds of each, all with names that say nothing."""
    corpus = CorpusConfig(name="pydocs", sha256="0" * 64)
    layers = (GssConfig(c=0.0, k=2.0), GssConfig(c=1.0, k=2.0))
    configs = [
        TrialConfig(seed=seed, corpus=corpus, output_layer=layer)
        for layer in layers
        for seed in seeds
    ]
    return [PlannedTrial.of(config, f"bend seed={config.seed}") for config in configs]


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


def test_status_names_what_failed_and_why(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trials = bends(*range(15))
    store.register(KEY, trials)
    run_id, place = store.begin_run(RUN), ("--storage", str(tmp_path))
    assert "Without a result" not in told(capsys, "status", *place)
    for number, trial in enumerate(trials[:3]):
        fail(
            store,
            trial.trial_id,
            cause=f"RuntimeError: [bold]no[/bold]\n{ESCAPE}cause {number}",
            run_id=run_id,
        )
    shown = told(capsys, "status", *place)
    assert all(f"[bold]no[/bold] ?[2J?]0;owned?cause {number}" in shown for number in range(3))
    assert all(trial.trial_id[:12] in shown and trial.name in shown for trial in trials[:3])
    assert "more" not in shown and "\x1b" not in shown and "\x07" not in shown
    for trial in trials[3:]:
        fail(store, trial.trial_id, cause="x" * 100_000, run_id=run_id)
    shown = told(capsys, "status", "bends", *place)
    assert shown.count(" failed ") == CAUSES_SHOWN + 1, "and the heading of the counts"
    assert f"and {30 - CAUSES_SHOWN} more" in shown and len(shown) < 40_000
    assert json.loads(told(capsys, "status", *place, "--format", "json"))[0]["failed"] == 30


def test_results_of_a_setting_by_its_hash(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trials, place = bends(1, 2, 3), ("--storage", str(tmp_path))
    store.register(KEY, trials)
    store.register(replace(KEY, scale="smoke"), bends(4)[:1])
    command = ("results", "bends", *place, "--format", "csv")

    def rows(*words: str) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(told(capsys, *command, *words))))

    every = rows("--scale", "quick")
    assert [row["trial_id"] for row in every] == [trial.trial_id for trial in trials]
    assert [row["output_layer.c"] for row in every] == ["0.0"] * 3 + ["1.0"] * 3
    for members in (every[:3], every[3:]):
        [setting] = {row["setting"] for row in members}
        for typed in (setting[:8], f"#{setting[:8]}", setting.upper()):
            assert rows("--scale", "quick", "--setting", typed) == members


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (("status", "bend"), "bends"),
        (("results", "bend"), "bends"),
        (("results", "bends", "--scale", "paper"), "scale paper"),
        *((("results", "bends", "--setting", typed), repr(typed)) for typed in ("", "abc", "0000")),
    ],
)  # fmt: skip
def test_what_is_not_in_the_store_is_one_sentence(
    words: tuple[str, ...],
    word: str,
    store: Store,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    store.register(KEY, bends(1))
    assert main([*words, "--storage", str(tmp_path)]) == 2
    assert word in capsys.readouterr().err


def test_report_all_covers_files_of_this_folder(
    store: Store,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    store.register(KEY, bends(1))
    store.record(outcome(bends(1)[0].trial_id), run_id=store.begin_run(RUN), spectrum=SPECTRUM)
    assert main(["report", "all", "--storage", str(tmp_path)]) == 2
    assert "bends.py" in capsys.readouterr().err
    study = "from search_spaces.catalog import load_study\nfrom search_spaces.study import Study\n"
    study += "STUDY = Study(name='bends', trials=load_study('gss_grid').trials)\n"
    Path("bends.py").write_text(study)
    assert "reports/bends-quick-pydocs/report.html" in told(
        capsys, "report", "all", "--storage", str(tmp_path)
    )


def test_an_archive_reads_back_as_the_store(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = ids(plan(2))
    store.register(KEY, plan(2))
    store.register(replace(KEY, study="others"), [*plan(1), *bends(1)])
    store.claim([first], owner="me", lease_s=600)
    recorded = outcome(first)
    store.record(recorded, run_id=store.begin_run(RUN), spectrum=SPECTRUM)
    folder = tmp_path / "new" / "archive"
    told(capsys, "store", "archive", str(folder), "--storage", str(tmp_path))
    trials, epochs, spectra = (
        pd.read_parquet(folder / f"{name}.parquet") for name in ("trials", "epochs", "spectra")
    )
    assert list(trials.study) == ["bends", "bends", *["others"] * 3]
    assert list(trials.trial_id) == [first, second, first, *ids(bends(1))]
    numbers = trials[trials.trial_id == first][["test_perplexity", "press_rank", "output_layer.k"]]
    assert numbers.to_numpy().tolist() == [[123.456789012345678, 402, 1e-7]] * 2
    assert trials.press_rank.isna().sum() == 3
    assert list(epochs.trial_id) == [first] * 3 and list(epochs.epoch) == [1, 2, 3]
    assert list(epochs.train_loss) == [epoch.train_loss for epoch in recorded.epochs]
    np.testing.assert_allclose(epochs.valid_perplexity, np.exp(5.25))
    assert (
        list(spectra.trial_id) == [first]
        and spectra.singular_values[0].tolist() == SPECTRUM.tolist()
    )


def test_an_archive_may_be_empty(store: Store, tmp_path: Path) -> None:
    store.register(KEY, plan(1))
    place = ("--storage", str(tmp_path))
    assert main(["store", "archive", str(tmp_path / "archive"), *place]) == 0
    for name in ("epochs", "spectra"):
        assert len(pd.read_parquet(tmp_path / f"archive/{name}.parquet")) == 0
    assert main(["store", "archive", str(tmp_path / "results.db"), *place]) == 2
