"""Trials of different settings are never pooled under one name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from orchestrator.plan.study_plan import PlanRequest, make_plan, scale_named
from search_spaces.catalog import load_study
from trainables.errors import UserError

STUDY = """
from search_spaces.study import Study
from trainables.config import SoftmaxConfig, GssConfig, TrainingConfig, TrialConfig

def trials(corpus):
    for seed in (1, 2):
        for rate in (10.0, 20.0, 20.0000001):
            training = TrainingConfig(learning_rate=rate)
            yield TrialConfig(seed=seed, corpus=corpus, output_layer=SoftmaxConfig(), training=training)
        yield TrialConfig(seed=seed, corpus=corpus, output_layer=GssConfig(c=0, k=2))

STUDY = Study(name="rates", trials=trials, corner=lambda trials: trials[1:4:2]LABEL)
"""


@pytest.fixture
def names(tmp_path: Path) -> Callable[..., list[str]]:
    def plan(label: str = "", scale: str = "quick", overrides: Mapping[str, Any] | None = None) -> list[str]:
        (tmp_path / "rates.py").write_text(STUDY.replace("LABEL", label))
        study = load_study(str(tmp_path / "rates.py"))
        return [
            trial.name
            for trial in make_plan(study, scale_named(scale), "pydocs", PlanRequest(overrides=overrides or {})).trials
        ]

    return plan


def test_the_default_label_names_what_varies_besides_the_seed(names: Callable[..., list[str]]) -> None:
    rates = [f"softmax, training.learning_rate={rate}" for rate in ("10", "20", "20.0000001")]
    assert names() == [f"{group} seed={seed}" for seed in (1, 2) for group in (*rates, "gss c=0 k=2")]


def test_a_trial_is_named_alike_where_the_scale_runs_no_others_of_its_group(names: Callable[..., list[str]]) -> None:
    assert names(scale="smoke") == ["softmax, training.learning_rate=20 seed=1", "gss c=0 k=2 seed=1"]
    assert names(scale="smoke", overrides={"training.epochs": 2}) == names(scale="smoke")


@pytest.mark.parametrize(
    ("label", "sentence"),
    [
        (
            "c.output_layer.name + f' seed={c.seed}'",
            "calls trials 'softmax' that differ in training.learning_rate: let it",
        ),
        (
            "f'{c.output_layer.name} {c.training.learning_rate}'",
            "calls 2 of them 'softmax 10.0': let the name end in ' se",
        ),
        ("3", "gives 3"),
    ],
)
def test_a_label_that_trials_cannot_share_is_refused(
    names: Callable[..., list[str]], label: str, sentence: str
) -> None:
    for scale in ("smoke", "quick") if "seed" in label else ("quick",):
        with pytest.raises(UserError, match=re.escape(sentence)):
            names(f", label=lambda c: {label}", scale)
