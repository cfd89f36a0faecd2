from __future__ import annotations

import pytest
import torch

from tests.support import tiny_trial as tiny
from trainables.config import LanguageModelConfig, SoftmaxConfig
from trainables.draws import dropout, gaussian_noise, locked_dropout, word_dropout
from trainables.language_model import AwdLstm


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def model_with(**rates: float) -> AwdLstm:
    model = AwdLstm(tiny.trial(dropout=False).model.model_copy(update=rates), SoftmaxConfig(), 30)
    model.initialise(generator(1))
    return model.train()


def assert_rate(zero: torch.Tensor, rate: float) -> None:
    share, deviation = zero.float().mean().item(), (rate * (1 - rate) / zero.numel()) ** 0.5
    assert abs(share - rate) < 4 * deviation


@pytest.mark.parametrize("rate", [0.1, 0.4, 0.65])
def test_locked_dropout_shares_one_mask(rate: float) -> None:
    dropped = locked_dropout(torch.ones(9, 50, 40), rate, generator())
    assert_rate(dropped[0] == 0, rate)
    assert (dropped == dropped[0]).all()
    assert dropped[dropped != 0].unique().item() == pytest.approx(1 / (1 - rate))
    assert not (locked_dropout(torch.ones(9, 50, 40), rate, generator(1)) == dropped).all()
    rounded = locked_dropout(torch.ones(1, 400, 500, dtype=torch.bfloat16), rate, generator())
    assert rounded[rounded != 0].double().mean().item() == pytest.approx(1 / (1 - rate), rel=1e-6)


def test_word_dropout_takes_whole_rows() -> None:
    dropped = word_dropout(torch.ones(5000, 3), 0.1, generator())
    assert_rate(dropped[:, 0] == 0, 0.1)
    assert (dropped == dropped[:, :1]).all()


def test_noise_is_independent_and_normal() -> None:
    added = gaussian_noise(torch.full((50, 20, 30), 3.0), 0.15, generator()) - 3.0
    assert abs(added.mean().item()) < 0.15 * 4 / 30_000**0.5
    assert added.std().item() == pytest.approx(0.15, rel=0.02)
    fourth_moment = added.pow(4).mean().item()
    assert fourth_moment == pytest.approx(3 * 0.15**4, rel=0.05), "a normal distribution's"
    assert len(added.flatten().unique()) > 29_000


def test_drop_connect_stops_gradients() -> None:
    assert_rate(dropout(torch.ones(60, 50), 0.5, generator()) == 0, 0.5)
    tokens = torch.randint(30, (12, 4), generator=generator())
    for rate in (0.0, 0.5):
        model = model_with(dropconnect=rate)
        model.contexts(
            tokens, model.zero_state(4), generator(7)
        ).undropped_TBC.square().sum().backward()
        recurrent = [p.grad for name, p in model.named_parameters() if name.endswith("weight_hh")]
        assert len(recurrent) == 3
        for gradient in recurrent:
            assert gradient is not None
            assert abs((gradient == 0).float().mean().item() - rate) <= 0.4 * rate


RATES = [name for name in LanguageModelConfig.model_fields if name.startswith("drop")]


@pytest.mark.parametrize("rate", [*RATES, "embedding_noise"])
def test_rates_change_only_training(rate: str) -> None:
    tokens = torch.randint(30, (12, 4), generator=generator())
    models = model_with(), model_with(**{rate: 0.5})
    plain, dropped = (m.contexts(tokens, m.zero_state(4), generator()) for m in models)
    assert not torch.allclose(plain.dropped_TBC, dropped.dropped_TBC)
    assert torch.equal(plain.undropped_TBC, dropped.undropped_TBC) is (rate == "dropout_output")
    plain, dropped = (m.eval().contexts(tokens, m.zero_state(4)) for m in models)
    assert torch.equal(plain.dropped_TBC, dropped.dropped_TBC)


def test_training_needs_a_generator() -> None:
    model = model_with()
    with pytest.raises(ValueError, match="generator"):
        model.contexts(torch.zeros(2, 1, dtype=torch.long), model.zero_state(1))
