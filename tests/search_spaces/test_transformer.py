from __future__ import annotations

import pytest

from search_spaces.awd_lstm import awd_lstm
from search_spaces.scales import SCALES, apply_scale
from search_spaces.transformer import ladder, transformer
from trainables.config import (
    CorpusConfig,
    SoftmaxConfig,
    TransformerTrialConfig,
)

PTB = CorpusConfig(name="ptb", sha256="0" * 64)
PLAIN = transformer(PTB, SoftmaxConfig())


def at(scale: str, config: TransformerTrialConfig) -> TransformerTrialConfig:
    scaled = apply_scale(SCALES[scale], config)
    assert isinstance(scaled, TransformerTrialConfig)
    return scaled


def test_width_768_is_gpt_2() -> None:
    """Layers and heads: Radford et al. 2019, Table 2.

    Learning rate: GPT-3 small in Brown et al. 2020, Table 2.1.
    """
    assert (ladder(768).layers, ladder(768).heads, ladder(768).learning_rate) == (12, 12, 6.0e-4)


@pytest.mark.parametrize("width", [-2, 0, 1, 65])
def test_width_must_be_even(width: int) -> None:
    with pytest.raises(ValueError, match="even number"):
        ladder(width)


def test_measuring_uses_the_training_window() -> None:
    assert PLAIN.evaluation.window == PLAIN.training.window
    lstm = awd_lstm(PTB, SoftmaxConfig())
    assert PLAIN.evaluation.rank_contexts == lstm.evaluation.rank_contexts
    assert at("paper", PLAIN) == PLAIN


@pytest.mark.parametrize(
    ("scale", "factor"), [("smoke", 1 / 32), ("quick", 1 / 8), ("small", 1 / 2)]
)
def test_smaller_scale_lowers_the_rung(scale: str, factor: float) -> None:
    rates = []
    for width in (64, 128, 256, 512, 768, 1024, 1536):
        trial = at(scale, transformer(PTB, SoftmaxConfig(), width=width))
        rung, model = ladder(int(width * factor)), trial.model
        assert (model.width, model.layers, model.heads) == (rung.width, rung.layers, rung.heads)
        rates.append(trial.training.learning_rate / rung.learning_rate)
    assert rates == pytest.approx([rates[0]] * len(rates)), "one factor for all widths"


@pytest.mark.parametrize("scale", ["smoke", "quick", "small"])
def test_scale_keeps_batch_share(scale: str) -> None:
    epochs = 2 * PLAIN.training.epochs
    twice = PLAIN.with_values({"training.batch_size": 64, "training.epochs": epochs})
    one, two = (at(scale, trial).training for trial in (PLAIN, twice))
    assert (two.batch_size, two.epochs) == (2 * one.batch_size, 2 * one.epochs)
    assert (two.warm_up_tokens, two.learning_rate) == (one.warm_up_tokens, one.learning_rate)
