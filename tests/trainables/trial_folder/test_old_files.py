"""The files of trials that version 1 wrote, without checksums, are read, measured again and gone on
from."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.support import tiny_trial
from trainables.config import TrialConfig
from trainables.runtime import Runtime
from trainables.trial import kept_weights, trial_run
from trainables.trial_folder.folder import TrialFolder

OLD = Path(__file__).parents[2] / "assets" / "trial_folder_v1"


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> TrialConfig:
    for module in (trial_run, kept_weights):
        monkeypatch.setattr(module, "load", lambda *_, **__: tiny_trial.corpus(600))
    return TrialConfig.model_validate_json((OLD / "config.json").read_bytes())


def copied(tmp_path: Path, name: str) -> Path:
    return Path(shutil.copytree(OLD / name, tmp_path / name))


def test_a_result_is_read_with_its_spectrum(config: TrialConfig) -> None:
    result = TrialFolder(OLD / "whole", config.trial_id).result()
    assert result is not None
    outcome, spectrum = result
    assert (
        outcome.measurements
        == json.loads((OLD / "whole" / "result.json").read_bytes())["measurements"]
    )
    assert (
        spectrum is not None
        and spectrum.tolist() == np.load(OLD / "whole" / "spectrum.npy").tolist()
    )


def test_a_later_measurement_is_read_and_another_one_is_taken(
    config: TrialConfig, tmp_path: Path
) -> None:
    path = copied(tmp_path, "measured_later")
    folder = TrialFolder(path, config.trial_id)
    measured = folder.measurement("spectrum@1")
    assert measured is not None and measured.singular_values is not None
    assert (
        measured.metrics
        == json.loads((path / "measurement-spectrum@1.json").read_bytes())["metrics"]
    )
    assert (
        measured.singular_values.tolist() == np.load(path / "measurement-spectrum@1.npy").tolist()
    )
    notes: list[str] = []
    kept_weights.measure_kept(
        config,
        directory=path,
        runtime=Runtime(),
        names=("spectrum@1", "perplexity@1"),
        note=notes.append,
    )
    again = folder.measurement("perplexity@1")
    assert again is not None and notes == []
    [old] = [
        table["test_perplexity"] for table in read(path).values() if "test_perplexity" in table
    ]
    assert again.metrics["test_perplexity"] == pytest.approx(old, rel=1e-5)


def read(path: Path) -> dict[str, dict[str, float]]:
    measurements: dict[str, dict[str, float]] = json.loads((path / "result.json").read_bytes())[
        "measurements"
    ]
    return measurements


def test_a_trial_goes_on_from_a_checkpoint(config: TrialConfig, tmp_path: Path) -> None:
    heard: list[int] = []
    notes: list[str] = []
    path = copied(tmp_path, "under_way")
    outcome = trial_run.run_trial(
        config,
        directory=path,
        runtime=Runtime(),
        on_epoch=lambda epoch: heard.append(epoch.epoch),
        note=notes.append,
    )
    assert (outcome.state, heard, notes) == ("done", [2], [])
    assert outcome.epochs[1].valid_loss == pytest.approx(
        json.loads((OLD / "whole" / "result.json").read_bytes())["epochs"][1]["valid_loss"],
        rel=1e-5,
    )
