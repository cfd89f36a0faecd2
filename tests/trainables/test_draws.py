"""Every dropout really acts: its rate, what it shares a mask over, and which gradients it stops."""

from __future__ import annotations

import pytest
import torch

from tests.support import tiny_trial as tiny
from trainables.config import LanguageModelConfig, SoftmaxConfig
from trainables.draws import drop_connect, dropout, gaussian_noise, locked_dropout, word_dropout
from trainables.language_model.awd_lstm import AwdLstm


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def model_with(**rates: float) -> AwdLstm:
    model = AwdLstm(tiny.trial(dropout=False).model.model_copy(update=rates), SoftmaxConfig(), 30)
    model.initialise(generator(1))
    return model.train()


def assert_rate(zero: torch.Tensor, rate: float) -> None:
    """The share of zeros is the rate, within four standard deviations of a binomial."""
    share, deviation = zero.float().mean().item(), (rate * (1 - rate) / zero.numel()) ** 0.5
    assert abs(share - rate) < 4 * deviation


@pytest.mark.parametrize("rate", [0.1, 0.4, 0.65])
def test_locked_dropout_has_its_rate_its_scale_and_one_mask_for_all_time_steps(rate: float) -> None:
    dropped = locked_dropout(torch.ones(9, 50, 40), rate, generator())
    assert_rate(dropped[0] == 0, rate)
    assert (dropped == dropped[0]).all()
    assert dropped[dropped != 0].unique().item() == pytest.approx(1 / (1 - rate))
    assert not (locked_dropout(torch.ones(9, 50, 40), rate, generator(1)) == dropped).all()


def test_plain_dropout_has_its_rate_and_its_scale_and_a_mask_for_every_element() -> None:
    dropped = dropout(torch.ones(9, 50, 40), 0.3, generator())
    assert_rate(dropped == 0, 0.3)
    assert dropped[dropped != 0].unique().item() == pytest.approx(1 / 0.7)
    for axis in range(3):
        assert_rate(dropped.select(axis, 0) == 0, 0.3)
        assert not torch.equal(dropped.select(axis, 0), dropped.select(axis, 1))
    assert torch.equal(dropout(dropped, 0.3, None), dropped)


def test_dropout_of_bf16_keeps_the_mean() -> None:
    dropped = locked_dropout(torch.ones(1, 400, 500, dtype=torch.bfloat16), 0.29, generator())
    assert dropped[dropped != 0].double().mean().item() == pytest.approx(1 / 0.71, rel=1e-6)


def test_word_dropout_takes_whole_rows() -> None:
    dropped = word_dropout(torch.ones(5000, 3), 0.1, generator())
    assert_rate(dropped[:, 0] == 0, 0.1)
    assert (dropped == dropped[:, :1]).all()


def test_noise_is_normal_with_its_deviation_and_new_for_every_element() -> None:
    added = gaussian_noise(torch.full((50, 20, 30), 3.0), 0.15, generator()) - 3.0
    assert abs(added.mean().item()) < 0.15 * 4 / 30_000**0.5
    assert added.std().item() == pytest.approx(0.15, rel=0.02)
    assert added.pow(4).mean().item() == pytest.approx(
        3 * 0.15**4, rel=0.05
    )  # a normal distribution's
    assert len(added.flatten().unique()) > 29_000
    assert abs(torch.corrcoef(added[:2].flatten(1))[0, 1].item()) < 0.2


def test_drop_connect_drops_single_weights_and_stops_their_gradients_in_every_layer() -> None:
    assert_rate(drop_connect(torch.ones(60, 50), 0.5, generator()) == 0, 0.5)
    tokens = torch.randint(30, (12, 4), generator=generator())
    for rate in (0.0, 0.5):
        model = model_with(dropconnect=rate)
        model.contexts(tokens, model.zero_state(4), generator(7)).h3_TBC.square().sum().backward()
        recurrent = [p.grad for name, p in model.named_parameters() if name.endswith("weight_hh")]
        assert len(recurrent) == 3
        for gradient in recurrent:
            assert gradient is not None
            assert abs((gradient == 0).float().mean().item() - rate) <= 0.4 * rate


@pytest.mark.parametrize(
    "rate",
    [
        name
        for name in LanguageModelConfig.model_fields
        if name.startswith("drop") or name == "embedding_noise"
    ],
)
def test_every_rate_of_the_config_changes_training_but_not_evaluation(rate: str) -> None:
    tokens = torch.randint(30, (12, 4), generator=generator())
    plain, dropping = model_with(), model_with(**{rate: 0.5})
    undropped, dropped = (
        m.contexts(tokens, m.zero_state(4), generator()).dropped_TBC for m in (plain, dropping)
    )
    assert not torch.allclose(undropped, dropped)
    undropped, dropped = (
        m.eval().contexts(tokens, m.zero_state(4)).dropped_TBC for m in (plain, dropping)
    )
    assert torch.equal(undropped, dropped)


def test_only_the_output_dropout_separates_h3_from_what_the_output_layer_sees() -> None:
    tokens = torch.randint(30, (12, 40), generator=generator())
    contexts = (model := model_with(dropout_output=0.4)).contexts(
        tokens, model.zero_state(40), generator()
    )
    assert_rate(contexts.dropped_TBC[0] == 0, 0.4)
    kept = contexts.dropped_TBC != 0
    torch.testing.assert_close(contexts.dropped_TBC[kept] * 0.6, contexts.h3_TBC[kept])


def test_training_without_a_generator_is_an_error() -> None:
    model = model_with()
    with pytest.raises(ValueError, match="generator"):
        model.contexts(torch.zeros(2, 1, dtype=torch.long), model.zero_state(1))
