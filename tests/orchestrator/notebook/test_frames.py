from __future__ import annotations

import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from orchestrator import epochs, results, spectra
from orchestrator.notebook.frames import plain_settings
from orchestrator.notebook.sweeps import _words
from orchestrator.store import Store
from orchestrator.variants import Variant, parse_settings
from search_spaces.catalog import load_study
from tests.support.command import ROOT
from tests.support.store_rows import KEY, RUN, SPECTRUM, ids, outcome, plan
from trainables.errors import UserError
from trainables.trial_folder import UserEpoch

EPOCHS = Variant(settings={"training.epochs": (3,)}).text
OTHER = replace(KEY, scale="paper", overrides=EPOCHS)


@pytest.fixture
def storage(store: Store, tmp_path: Path) -> str:
    store.register(KEY, plan(2))
    store.register(OTHER, plan(1, group="other"))
    store.claim(ids(plan(1)), owner="me", lease_s=600)
    store.record(outcome(ids(plan(1))[0]), run_id=store.begin_run(RUN), spectrum=SPECTRUM)
    return str(tmp_path)


def test_row_is_trial_of_variant(storage: str) -> None:
    frame = results(storage=storage)
    columns = ["study", "scale", "corpus", "overrides", "trial_id", "setting"]
    assert list(frame.columns[:6]) == columns
    assert list(frame.trial_id) == [*ids(plan(2)), *ids(plan(1, group="other"))]
    assert list(frame.state) == ["done", "planned", "planned"]
    assert list(frame.scale) == [KEY.scale, KEY.scale, "paper"]
    assert list(frame.overrides) == ["{}", "{}", EPOCHS]
    assert frame.press_rank[0] == 402 and math.isnan(frame.press_rank[1])


@pytest.mark.parametrize(
    ("selection", "rows"),
    [
        ({"scale": "paper"}, 1),
        ({"overrides": {"training.epochs": 3}}, 1),
        ({"overrides": {}}, 2),
        ({"model": "lstm"}, 2),
        ({"model": "transformer"}, 1),
    ],
)
def test_arguments_choose_variants(
    selection: dict[str, Any], rows: int, store: Store, storage: str
) -> None:
    chosen = replace(KEY, overrides=Variant(model="transformer").text)
    store.register(chosen, plan(1, group="model"))
    assert len(results(KEY.study, storage=storage, **selection)) == rows


def test_own_metrics_are_columns(store: Store, storage: str) -> None:
    trial_id = ids(plan(2))[1]
    attempts = store.claim([trial_id], owner="me", lease_s=600)
    points = [UserEpoch(epoch=number, seconds=1.0, score=number / 2) for number in range(2)]
    store.record_epochs({trial_id: points}, attempts=attempts)
    frame = epochs(storage=storage)
    own = frame[frame.trial_id == trial_id]
    assert list(own.epoch) == [0, 1] and list(own.score) == [0.0, 0.5]
    assert own.valid_loss.isna().all() and frame.score.notna().sum() == 2


def test_long_frames_name_their_trial(storage: str) -> None:
    measured, recorded = epochs(storage=storage), outcome(ids(plan(1))[0])
    assert list(measured.epoch) == [epoch.epoch for epoch in recorded.model_epochs]
    assert list(measured.valid_loss) == [epoch.valid_loss for epoch in recorded.model_epochs]
    np.testing.assert_allclose(measured.valid_perplexity, np.exp(measured.valid_loss))
    values = spectra(KEY.study, storage=storage)
    assert list(values.singular_value) == list(SPECTRUM)
    assert list(values["index"]) == list(range(1, 1 + len(SPECTRUM)))
    for frame in (measured, values):
        assert set(frame.trial_id) == set(ids(plan(1))) and set(frame.group) == {"trial 0"}


@pytest.mark.parametrize("function", [epochs, spectra])
def test_frame_without_measurements_is_empty(function: type, storage: str) -> None:
    frame = function(scale="paper", storage=storage)
    assert isinstance(frame, pd.DataFrame) and frame.empty and "trial_id" in frame.columns


@pytest.mark.parametrize(
    ("study", "selection", "word"),
    [
        ("none", {}, "it has gss_grid"),
        (KEY.study, {"scale": "smoke"}, "List its variants"),
        (KEY.study, {"scale": "smok"}, "scale smok"),
        (load_study(KEY.study), {}, "a Python file"),
        (None, {"scale": "smoke"}, "Drop a condition"),
        (None, {"storage": "nowhere"}, "no results store"),
        (KEY.study, {"model": "gru"}, "unknown --model"),
        (KEY.study, {"overrides": ["training.epochs=3"]}, "a dict such as"),
    ],
)
def test_missing_inputs_get_one_sentence(
    study: Any, selection: dict[str, Any], word: str, storage: str
) -> None:
    with pytest.raises(UserError, match=word):
        results(study, **{"storage": storage, **selection})


def test_list_equals_comma_separated_text() -> None:
    settings = {
        "training.learning_rate": [20.0, np.float64(5.0)],
        "training.optimizer": ("sgd", "adam"),
        "learning_rates": [[0.1, 0.2]],
        "bptt": 70,
    }
    words = [word.removeprefix("--set=") for word in _words({"settings": settings})]
    assert parse_settings(words) == plain_settings(settings)
    assert plain_settings(settings)["training.learning_rate"] == (5.0, 20.0)


def test_commands_elsewhere_name_a_module(tmp_path: Path) -> None:
    surroundings = {name: value for name, value in os.environ.items() if name != "SWEEP_PROGRAM"}
    surroundings["PYTHONPATH"] = os.fspath(ROOT)

    def ran(folder: Path, *words: str) -> str:
        command = [sys.executable, *words]
        return subprocess.check_output(command, cwd=folder, env=surroundings, text=True)

    script = "from trainables.errors import PROGRAM; print(PROGRAM)"
    for folder, program in ((ROOT, "python sweep.py"), (tmp_path, "python -m sweep")):
        assert ran(folder, "-c", script) == f"{program}\n"
    assert ran(tmp_path, "-m", "sweep", "status", "--help")
