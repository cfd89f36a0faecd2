"""The ladder of Transformers, the recipe at paper scale, and what scales make of both."""

from __future__ import annotations

from itertools import pairwise

import pytest

from search_spaces.awd_lstm import awd_lstm
from search_spaces.scales import SCALES, apply_scale
from search_spaces.transformer import ladder, transformer
from trainables.config import (
    CorpusConfig,
    EtAsgdConfig,
    GssConfig,
    LanguageModelConfig,
    MosConfig,
    SoftmaxConfig,
    TransformerConfig,
    TransformerTrialConfig,
    TrialConfig,
)

PTB = CorpusConfig(name="ptb", sha256="0" * 64)
WIDTHS = (16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768)


def at(scale: str, config: TransformerTrialConfig) -> TransformerTrialConfig:
    scaled = apply_scale(SCALES[scale], config)
    assert isinstance(scaled, TransformerTrialConfig)
    return scaled


@pytest.mark.parametrize("width", WIDTHS)
def test_every_width_of_the_ladder_is_a_model_that_there_is(width: int) -> None:
    rung = ladder(width)
    model = TransformerConfig(width=width, layers=rung.layers, heads=rung.heads)
    assert model.width % (2 * model.heads) == 0
    assert rung.heads >= 2 and width / rung.heads <= 64


def test_a_wider_model_is_no_shallower_has_no_fewer_heads_and_learns_at_a_lower_rate() -> None:
    for narrow, wide in pairwise(map(ladder, WIDTHS)):
        assert narrow.layers <= wide.layers
        assert narrow.heads <= wide.heads
        assert narrow.learning_rate > wide.learning_rate


def test_at_width_768_the_shape_is_that_of_gpt_2_small_and_the_rate_that_of_gpt_3_small() -> None:
    """Radford et al. 2019, Table 2; Brown et al. 2020, Table 2.1."""
    assert (ladder(768).layers, ladder(768).heads, ladder(768).learning_rate) == (12, 12, 6.0e-4)


def test_the_learning_rate_is_as_the_inverse_of_the_width() -> None:
    assert ladder(128).learning_rate == pytest.approx(4 * ladder(512).learning_rate)


def test_heads_of_an_even_width_divide_what_64_does_not() -> None:
    assert [ladder(width).heads for width in (96, 100, 150, 160, 250)] == [2, 2, 1, 2, 1]


@pytest.mark.parametrize("width", [-2, 0, 1, 65])
def test_a_width_that_no_rotary_position_can_turn_is_refused(width: int) -> None:
    with pytest.raises(ValueError, match=f"even number, at least 2; got {width}"):
        ladder(width)


def test_a_trial_is_on_the_ladder_and_measured_on_the_windows_that_it_is_trained_on() -> None:
    trial = transformer(
        PTB, GssConfig(c=-1.5, k=2.5), seed=7, width=256, head="untied", head_rank=64
    )
    rung = ladder(256)
    assert (trial.model.layers, trial.model.heads) == (rung.layers, rung.heads)
    assert trial.training.learning_rate == rung.learning_rate
    assert trial.evaluation.window == trial.training.window
    assert (trial.seed, trial.model.head, trial.model.head_rank) == (7, "untied", 64)


def test_ranks_are_over_as_many_contexts_as_those_of_the_lstm() -> None:
    for name in ("ptb", "wikitext-2"):
        corpus = CorpusConfig(name=name, sha256="0" * 64)
        lstm, trial = awd_lstm(corpus, SoftmaxConfig()), transformer(corpus, SoftmaxConfig())
        assert trial.evaluation.rank_contexts == lstm.evaluation.rank_contexts


def test_scale_paper_leaves_a_transformer_as_it_is() -> None:
    trial = transformer(PTB, SoftmaxConfig())
    assert at("paper", trial) == trial


@pytest.mark.parametrize(
    ("scale", "factor"), [("smoke", 1 / 32), ("quick", 1 / 8), ("small", 1 / 2)]
)
def test_a_scale_takes_every_trial_of_the_ladder_to_a_lower_rung(scale: str, factor: float) -> None:
    widths = (64, 128, 256, 512, 768, 1024, 1536)
    scaled = [at(scale, transformer(PTB, SoftmaxConfig(), width=width)) for width in widths]
    rungs = [ladder(int(width * factor)) for width in widths]
    shapes = [(trial.model.width, trial.model.layers, trial.model.heads) for trial in scaled]
    assert shapes == [(rung.width, rung.layers, rung.heads) for rung in rungs]
    rates = [
        trial.training.learning_rate / rung.learning_rate
        for trial, rung in zip(scaled, rungs, strict=True)
    ]
    assert rates == pytest.approx([rates[0]] * len(rates)), (
        "the scale's own factor, the same for all"
    )


def test_a_trial_beside_the_ladder_stays_beside_it() -> None:
    trial = transformer(PTB, SoftmaxConfig())
    deep = trial.with_values(
        {"model.layers": 16, "training.learning_rate": 4 * trial.training.learning_rate}
    )
    assert at("quick", deep).model.layers == 2 * at("quick", trial).model.layers
    assert at("quick", deep).training.learning_rate == pytest.approx(
        4 * at("quick", trial).training.learning_rate
    )


@pytest.mark.parametrize("scale", SCALES)
def test_windows_of_training_and_of_measuring_shrink_alike(scale: str) -> None:
    trial = transformer(PTB, SoftmaxConfig())
    assert at(scale, trial).evaluation.window == at(scale, trial).training.window
    half = trial.with_values({"evaluation.window": 128})
    assert at(scale, half).evaluation.window == at(scale, trial).training.window // 2


@pytest.mark.parametrize("scale", SCALES)
def test_the_rank_of_a_head_stays_the_same_share_of_the_width(scale: str) -> None:
    for width, rank in ((512, 512), (512, 256), (512, 4), (256, 256)):
        model = at(
            scale, transformer(PTB, SoftmaxConfig(), width=width, head="untied", head_rank=rank)
        ).model
        assert model.head_rank == max(1, round(rank * model.width / width))
    for rank in (400, 200, 10):
        lstm = awd_lstm(PTB, SoftmaxConfig())
        lstm = lstm.model_copy(update={"model": LanguageModelConfig(head_rank=rank)})
        scaled = apply_scale(SCALES[scale], lstm)
        assert isinstance(scaled, TrialConfig)
        assert scaled.model.head_rank == max(1, round(rank * scaled.model.embedding_width / 400))


def test_a_head_without_a_rank_gets_none() -> None:
    assert at("quick", transformer(PTB, SoftmaxConfig())).model.head_rank is None


def test_at_quick_lstm_and_transformer_see_as_many_tokens_and_are_measured_on_the_same_texts() -> (
    None
):
    lstm = apply_scale(SCALES["quick"], awd_lstm(PTB, MosConfig(), averaging=EtAsgdConfig()))
    trial = at("quick", transformer(PTB, MosConfig()))
    assert isinstance(lstm, TrialConfig)
    assert trial.training.epochs == lstm.training.epochs
    assert trial.training.epoch_tokens == lstm.training.epoch_tokens
    assert trial.corpus == lstm.corpus
    assert trial.output_layer == lstm.output_layer
    assert trial.evaluation.model_copy(update={"window": 70}) == lstm.evaluation
