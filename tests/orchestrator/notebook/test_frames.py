"""What a store holds as data frames: which variants, with which columns, the numbers as they were
recorded."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from orchestrator import epochs, results, spectra
from orchestrator.store.store import Store
from tests.support.command import ROOT
from tests.support.store_rows import KEY, RUN, SPECTRUM, ids, outcome, plan
from trainables.errors import UserError

OTHER = replace(KEY, scale="paper", overrides='{"settings":{"training.epochs":[3]}}')


@pytest.fixture
def place(store: Store, tmp_path: Path) -> str:
    """A storage whose store has two variants of a study: two trials, the first one done; and one
    that is planned."""
    store.register(KEY, plan(2))
    store.register(OTHER, plan(1, group="other"))
    store.claim(ids(plan(1)), owner="me", lease_s=600)
    store.record(outcome(ids(plan(1))[0]), run_id=store.begin_run(RUN), spectrum=SPECTRUM)
    return str(tmp_path)


def test_a_row_is_a_trial_of_a_variant(place: str) -> None:
    frame = results(storage=place)
    assert list(frame.columns[:6]) == [
        "study",
        "scale",
        "corpus",
        "overrides",
        "trial_id",
        "setting",
    ]
    assert list(frame.trial_id) == [*ids(plan(2)), *ids(plan(1, group="other"))]
    assert list(frame.state) == ["done", "planned", "planned"]
    assert list(frame.scale) == [KEY.scale, KEY.scale, "paper"]
    assert list(frame.overrides) == ["{}", "{}", '{"settings":{"training.epochs":[3]}}']
    assert frame.press_rank[0] == 402 and math.isnan(frame.press_rank[1])
    assert len(results(KEY.study, storage=place, scale="paper")) == 1
    assert len(results(KEY.study, storage=place, overrides={"training.epochs": 3})) == 1
    assert len(results(KEY.study, storage=place, overrides={})) == 2


def test_a_model_names_the_variant_that_was_run_with_it(store: Store, place: str) -> None:
    chosen = replace(KEY, overrides='{"model":"transformer"}')
    store.register(chosen, plan(1, group="model"))
    frame = results(KEY.study, storage=place, model="transformer")
    assert list(frame.trial_id) == ids(plan(1, group="model")) and list(frame.overrides) == [
        chosen.overrides
    ]
    assert len(results(KEY.study, storage=place, model="lstm")) == 2
    with pytest.raises(UserError, match="the store has no study"):
        results(KEY.study, storage=place, model="transformer", overrides={"training.epochs": 3})
    with pytest.raises(UserError, match="unknown --model 'gru'"):
        results(KEY.study, storage=place, model="gru")


def test_epochs_and_singular_values_say_which_trial_they_are_of(place: str) -> None:
    measured, outcome_of_it = epochs(storage=place), outcome(ids(plan(1))[0])
    assert list(measured.epoch) == [epoch.epoch for epoch in outcome_of_it.epochs]
    assert list(measured.valid_loss) == [epoch.valid_loss for epoch in outcome_of_it.epochs]
    np.testing.assert_allclose(measured.valid_perplexity, np.exp(measured.valid_loss))
    values = spectra(KEY.study, storage=place)
    assert list(values.singular_value) == list(SPECTRUM) and list(values["index"]) == list(
        range(1, 1 + len(SPECTRUM))
    )
    for frame in (measured, values):
        assert set(frame.trial_id) == set(ids(plan(1))) and set(frame.group) == {"trial 0"}


@pytest.mark.parametrize("function", [epochs, spectra])
def test_where_nothing_is_measured_the_frame_is_empty(function: type, place: str) -> None:
    frame = function(scale="paper", storage=place)
    assert isinstance(frame, pd.DataFrame) and frame.empty and "trial_id" in frame.columns


def test_what_is_not_there_is_one_sentence(place: str, tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=rf"the store has no study 'none'; it has {KEY.study}: choose"
    ):
        results("none", storage=place)
    with pytest.raises(
        UserError, match=f"no study '{KEY.study}', scale smoke: see which variants it has"
    ):
        epochs(KEY.study, scale="smoke", storage=place)
    with pytest.raises(UserError, match="There is no results store"):
        spectra(storage=str(tmp_path / "nowhere"))
    with pytest.raises(TypeError, match="scal"):
        results(KEY.study, scal="smoke", storage=place)


def test_outside_the_checkout_an_error_names_a_command_that_works_there(tmp_path: Path) -> None:
    surroundings = {name: value for name, value in os.environ.items() if name != "SWEEP_PROGRAM"}
    surroundings["PYTHONPATH"] = os.fspath(ROOT)
    script = "from trainables.errors import PROGRAM; print(PROGRAM)"
    for folder, program in ((ROOT, "python sweep.py"), (tmp_path, "python -m sweep")):
        named = subprocess.run(
            [sys.executable, "-c", script],
            cwd=folder,
            env=surroundings,
            capture_output=True,
            text=True,
            check=True,
        )
        assert named.stdout == f"{program}\n"
    words = ["-m", "sweep", "status", "--help"]
    assert (
        subprocess.run(
            [sys.executable, *words], cwd=tmp_path, env=surroundings, capture_output=True
        ).returncode
        == 0
    )
