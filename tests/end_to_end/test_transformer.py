from __future__ import annotations

from pathlib import Path

import numpy as np

from orchestrator import epochs, results, spectra, trained
from tests.support.command import results_table, sweep
from tests.support.one_ray import without_ray
from tests.support.smoke_trials import smoke_plan, train_here
from trainables.config import TransformerTrialConfig

MODEL = ("--model", "transformer")
SMOKE = ("--scale", "smoke", "--max-concurrent", "1", "--storage")


def page_of(output: str) -> str:
    return Path(output.split("Report: ")[1].splitlines()[0]).read_text(encoding="utf-8")


def test_transformer_grid_is_a_variant(tmp_path: Path) -> None:
    typed = ("gss_grid", *MODEL, *SMOKE, tmp_path)
    train_here(tmp_path, smoke_plan("gss_grid", model="transformer"))
    with without_ray():
        answer = sweep(*typed)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "--model transformer" in answer.stdout and "4 already done" in answer.stdout
    page = page_of(answer.stdout)
    assert "Transformers in place of AWD-LSTMs" in page and "heads 2, window 16" in page
    assert "LSTM layers" not in page and "+0.48" not in page
    with without_ray():
        assert "0 to run, 4 already done" in sweep(*typed).stdout
    rows = results_table(tmp_path, "gss_grid", *MODEL)
    assert {(row["state"], row["model.width"]) for row in rows} == {("done", "16")}
    assert sweep("results", "gss_grid", "--model", "lstm", "--storage", tmp_path).returncode == 2
    stopped = sweep("stop", "gss_grid", *MODEL, "--storage", tmp_path)
    assert "corpus pydocs, --model transformer" in stopped.stdout

    frame = results("gss_grid", storage=tmp_path, model="transformer")
    assert list(frame.trial_id) == [row["trial_id"] for row in rows]
    assert len(epochs(storage=tmp_path)) == 8
    model = trained(frame.trial_id[0], storage=tmp_path)
    assert isinstance(model.config, TransformerTrialConfig)
    sigma = np.linalg.svd(model.log_probabilities().astype(np.float64), compute_uv=False)
    measured = spectra(storage=tmp_path).query("trial_id == @frame.trial_id[0]").singular_value
    np.testing.assert_allclose(sigma, measured, rtol=1e-6, atol=1e-8 * sigma[0])
