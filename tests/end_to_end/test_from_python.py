from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator import epochs, results, run, spectra, trained
from orchestrator.store import open_store
from search_spaces.catalog import load_study
from tests.support.command import results_table
from trainables.errors import UserError


def test_frames_and_models_of_sweep(copied: Path) -> None:
    frame, table = results("gss_grid", storage=copied), results_table(copied)
    assert list(frame.state) == ["done"] * 4 and list(frame.group) == list(frame.name)
    assert list(frame.trial_id) == [row["trial_id"] for row in table]
    assert list(frame.test_perplexity) == [float(row["test_perplexity"]) for row in table]
    by_trial = epochs("gss_grid", storage=copied).groupby("trial_id", sort=False)
    np.testing.assert_allclose(by_trial.valid_perplexity.min(), frame.valid_perplexity, rtol=1e-12)
    model = trained(frame.trial_id[0][:8], storage=copied)
    assert model.config.trial_id == frame.trial_id[0]
    matrix = model.log_probabilities()
    assert matrix.shape == (frame.rank_rows[0], len(model.corpus.vocabulary))
    measured = spectra(storage=copied).query("trial_id == @frame.trial_id[0]").singular_value
    sigma = np.linalg.svd(matrix.astype(np.float64), compute_uv=False)
    np.testing.assert_allclose(sigma, measured, rtol=1e-6, atol=1e-8 * sigma[0])
    np.testing.assert_array_equal(model.log_probabilities(10), matrix[:10])
    with pytest.raises(UserError, match="ffffffffffff"):
        trained("ffffffffffff", storage=copied)


def test_run_returns_its_own_results(copied: Path, capfd: pytest.CaptureFixture[str]) -> None:
    options = {"scale": "smoke", "storage": copied}
    before = results("gss_grid", storage=copied)
    # Results of another corpus must not be part of this run.
    database = copied / "results.db"
    with open_store(f"sqlite:///{database}") as store:
        [key] = [summary.key for summary in store.studies()]
        store.register(replace(key, corpus="ptb"), store.trials(key))
    assert len(results("gss_grid", storage=copied)) == 8
    assert len(results("gss_grid", storage=copied, corpus=["ptb", "wikitext-2"])) == 4
    assert run("gss_grid", **options).equals(before)
    assert "0 to run, 4 already done" in capfd.readouterr().out
    # Results found in files need no GPU.
    database.unlink()
    recovered = run("gss_grid", **options, gpus_per_trial=1)
    assert "Recorded 4 results that an earlier run had left as files" in capfd.readouterr().out
    assert recovered.test_perplexity.equals(before.test_perplexity)


@pytest.mark.usefixtures("one_ray")
def test_corpus_and_contexts_make_variant(tmp_path: Path) -> None:
    contexts, folder, storage = (tmp_path / name for name in ("mine.json", "text", "results"))
    contexts.write_text('[{"last_token_index": 5}]')
    folder.mkdir()
    for split in ("train", "valid", "test"):
        (folder / f"{split}.txt").write_text("open the file and read the file\n" * 100)
    options = {"scale": "smoke", "storage": storage, "max_concurrent": 1, "corpus": folder}
    settings = {"training.epochs": np.int64(1)}
    frame = run("qualitative", contexts=contexts, settings=settings, **options)
    assert set(frame.corpus) == {"text"} and set(frame.state) == {"done"}
    assert frame.overrides.str.contains("mine.json").all() and set(frame.epochs) == {1}
    assert len(results("qualitative", storage=storage, corpus=folder)) == len(frame)


@pytest.mark.parametrize(
    ("study", "options", "key_word"),
    [
        ("gss_grid", {"dry_run": True}, "dry_run"),
        ("gss_grid", {"settings": ["training.epochs=3"]}, "dict"),
        ("gss_gird", {}, "did you mean gss_grid"),
        (load_study("gss_grid"), {}, "a Python file"),
    ],
)
def test_bad_arguments_raise(
    study: Any, options: dict[str, object], key_word: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=key_word):
        run(study, storage=tmp_path, **options)
