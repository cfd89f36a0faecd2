from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.plan.checks import require_text
from search_spaces.transformer import transformer
from tests.support import tiny_trial
from trainables.config import CorpusConfig, SoftmaxConfig, TransformerTrialConfig
from trainables.errors import UserError

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


def test_training_and_measuring_share_windows() -> None:
    with pytest.raises(UserError, match="--set"):
        require_text(trial(training__window=12), TEXT)
