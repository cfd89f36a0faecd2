from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.plan.checks import require_names, require_text
from search_spaces.catalog import load_study
from search_spaces.study import Analysis, Comparison, Correlation, Curves, GroupTable, Lines, Study
from search_spaces.transformer import transformer
from tests.support import tiny_trial
from trainables.config import (
    KINDS,
    METRICS,
    CorpusConfig,
    SoftmaxConfig,
    TransformerTrialConfig,
)
from trainables.errors import UserError
from trainables.trial_folder.metrics import NUMBERS

TEXT = tiny_trial.IDENTITY


def trial(**values: int) -> TransformerTrialConfig:
    config = transformer(CorpusConfig(name="tiny", sha256="0" * 64), SoftmaxConfig())
    sizes = {"training.batch_size": 4, "training.window": 10, "evaluation.window": 10}
    return config.with_values(
        {**sizes, **{key.replace("__", "."): value for key, value in values.items()}}
    )


def test_stream_needs_window_and_token() -> None:
    require_text(trial(), replace(TEXT, train_tokens=44))
    with pytest.raises(UserError, match="at least 44 tokens"):
        require_text(trial(), replace(TEXT, train_tokens=43))


def test_measurement_may_end_within_window() -> None:
    require_text(
        trial(evaluation__valid_batch_size=2), replace(TEXT, valid_tokens=6, test_tokens=3)
    )
    with pytest.raises(UserError, match="at least 6 tokens, but the valid text"):
        require_text(trial(evaluation__valid_batch_size=2), replace(TEXT, valid_tokens=5))


def test_lstm_needs_no_whole_window() -> None:
    require_text(tiny_trial.trial(batch_size=4, bptt=70), replace(TEXT, train_tokens=12))
    with pytest.raises(UserError, match="tokens"):
        require_text(tiny_trial.trial(batch_size=8, bptt=70), replace(TEXT, train_tokens=12))


def test_training_and_measuring_share_windows() -> None:
    with pytest.raises(UserError, match="--set"):
        require_text(trial(training__window=12), TEXT)


def study(*analyses: Analysis) -> Study:
    return Study(name="mine", analyses=analyses)


@pytest.mark.parametrize(
    "request_",
    [
        GroupTable(metrics=("test_perplexity", "nosuch")),
        Comparison(baselines={}, metric="test_error_percent"),
        Correlation(x="pres_rank"),
        Curves(x="steps", metrics=("press_rank",), caption=""),
        Lines(x="model.width", by="kind", metrics=("centred_stable_rnk",)),
    ],
)
def test_unknown_metric_is_refused(request_: Analysis) -> None:
    with pytest.raises(UserError, match="metric"):
        require_names(study(request_), [trial()])


def test_known_metrics_and_settings_pass() -> None:
    metrics = ("kl_at_rank_64", "bent tanh 15 press_rank", "similarity MEN", "generalisation_gap")
    curves = Curves(x="seed", metrics=metrics, caption="")
    require_names(study(curves, Curves(x="press_rank", metrics=metrics, caption="")), [trial()])
    with pytest.raises(UserError, match="nosuch"):
        require_names(study(curves, Curves(x="nosuch", metrics=metrics, caption="")), [trial()])


def test_metrics_of_unknown_kinds_pass() -> None:
    config: Any = SimpleNamespace(kind="mine", model_dump=lambda **_: {})
    table = study(GroupTable(metrics=("nosuch",)))
    require_names(table, [config])
    with pytest.raises(UserError, match="nosuch"):
        require_names(table, [trial()])
    [default] = Study(name="mine").analyses
    layer_task = next(iter(load_study("layer_gates").trials(trial().corpus)))
    require_names(study(default), [layer_task])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind.model_fields["kind"].default in METRICS]
)
def test_metric_names_of_every_kind(kind: Any) -> None:
    """Each metric is a number, except for predicted words and the name of the rank method."""
    names = METRICS[kind.model_fields["kind"].default].split()
    texts = [name for name in names if not NUMBERS.fullmatch(name.replace("*", " x"))]
    assert {*texts} <= {"top_k*", "rank_method"}
