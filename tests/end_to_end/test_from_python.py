"""A sweep from Python, and a model that it trained: the frames are the command's tables, the matrix
that which was measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from orchestrator import epochs, results, run, spectra, trained
from orchestrator.store.opening import open_store
from tests.support.command import results_table
from trainables.errors import UserError

SETTINGS = {"training.epochs": 2}


@pytest.mark.usefixtures("one_ray")
def test_a_sweep_its_frames_and_its_models(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    storage = str(tmp_path / "results")
    frame = run("gss_grid", scale="smoke", storage=storage, max_concurrent=1, settings=SETTINGS)
    shown = capfd.readouterr().out
    assert "4 to run" in shown and "All 4 trials are done." in shown
    assert list(frame.state) == ["done"] * 4 and list(frame.group) == list(frame.name)
    table = results_table(Path(storage), "gss_grid")
    assert [row["trial_id"] for row in table] == list(frame.trial_id)
    np.testing.assert_allclose(
        [float(row["test_perplexity"]) for row in table], frame.test_perplexity, rtol=0
    )
    last = (
        epochs("gss_grid", storage=storage).groupby("trial_id", sort=False).valid_perplexity.min()
    )
    np.testing.assert_allclose(last, frame.valid_perplexity, rtol=1e-12)
    kept = trained(frame.trial_id[0][:8], storage=storage)
    assert kept.config.trial_id == frame.trial_id[0]
    matrix = kept.log_probabilities()
    assert matrix.shape == (frame.rank_rows[0], frame.rank_columns[0]) and matrix.shape[1] == len(
        kept.corpus.vocabulary
    )
    measured = spectra(storage=storage)
    sigma = measured[measured.trial_id == frame.trial_id[0]].singular_value.to_numpy()
    np.testing.assert_allclose(
        np.linalg.svd(matrix.astype(np.float64), compute_uv=False),
        sigma,
        rtol=1e-6,
        atol=1e-8 * sigma[0],
    )
    np.testing.assert_array_equal(kept.log_probabilities(10), matrix[:10])
    again = run(
        "gss_grid", scale="smoke", storage=Path(storage), settings={"training.epochs": np.int64(2)}
    )
    assert "0 to run, 4 already done" in capfd.readouterr().out
    assert again.equals(results("gss_grid", storage=storage))
    # Another corpus' trials are no results of this run; what lies as files needs no GPU, whatever
    # it was trained on.
    database = Path(storage, "results.db")
    with open_store(f"sqlite:///{database}") as store:
        (key,) = (summary.key for summary in store.studies())
        store.register(replace(key, corpus="ptb"), [row.planned() for row in store.trials(key)])
    assert len(results("gss_grid", storage=storage)) == 8
    assert len(run("gss_grid", scale="smoke", storage=storage, settings=SETTINGS)) == 4
    assert len(results("gss_grid", storage=storage, corpus=["ptb", "wikitext-2"])) == 4
    database.unlink()
    recovered = run("gss_grid", scale="smoke", storage=storage, settings=SETTINGS, gpus_per_trial=1)
    assert "Recorded 4 results that an earlier run had left as files" in capfd.readouterr().out
    assert recovered.test_perplexity.equals(frame.test_perplexity)
    with pytest.raises(UserError, match="no trial has an id that begins with 'ffffffffffff'"):
        trained("ffffffffffff", storage=storage)


@pytest.mark.usefixtures("one_ray")
def test_results_of_a_run_are_of_its_variant_whatever_made_it_one(tmp_path: Path) -> None:
    contexts, folder = tmp_path / "mine.json", tmp_path / "text"
    contexts.write_text('[{"last_token_index": 5}]')
    folder.mkdir()
    for split in ("train", "valid", "test"):
        (folder / f"{split}.txt").write_text("open the file and read the file\n" * 100)
    options = {
        "scale": "smoke",
        "storage": tmp_path / "results",
        "max_concurrent": 1,
        "corpus": folder,
    }
    frame = run("qualitative", contexts=contexts, **options)
    assert set(frame.corpus) == {"text"} and set(frame.state) == {"done"}
    assert frame.overrides.str.startswith('{"contexts":"mine.json ').all()
    assert len(results("qualitative", storage=tmp_path / "results", corpus=folder)) == len(frame)


def test_what_the_command_refuses_is_raised(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="run takes no dry_run"):
        run("gss_grid", dry_run=True)
    with pytest.raises(UserError, match="settings are a dict"):
        run("gss_grid", settings=["training.epochs=3"])
    with pytest.raises(UserError, match="unknown study 'gss_gird': did you mean gss_grid"):
        run("gss_gird", storage=str(tmp_path))
