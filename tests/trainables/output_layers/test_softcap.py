"""Softcaps: the formulas of their sources, derivatives where f is flat, and starts from which small
caps learn."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pytest
import torch

from tests.support import tiny_trial as tiny
from trainables.config import SoftcapConfig
from trainables.output_layers import Pointwise, PointwiseSoftmax, Softcap
from trainables.output_layers.pointwise import centred_bias
from trainables.runtime import Runtime
from trainables.training import Trainer

FORMS: tuple[Literal["tanh", "sigmoid"], ...] = ("tanh", "sigmoid")
every_cap = pytest.mark.parametrize(
    ("form", "cap"), [(form, cap) for form in FORMS for cap in (0.5, 5.0, 23.0, 300.0)]
)


def applied(function: Pointwise, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """f up to a constant, and f', as the chunked loss takes them."""
    chunk_pass = function.chunk_pass(x.unsqueeze(0))
    f, slope = x.clone().unsqueeze(0), torch.ones(1, len(x), dtype=x.dtype)
    chunk_pass.apply_(f)
    chunk_pass.pull_back_(slope)
    return f[0], slope[0]


def test_at_their_caps_the_forms_are_those_of_gemma_2_and_of_modded_nanogpt() -> None:
    x = np.linspace(-80, 80, 321)
    gemma = 30 * np.tanh(x / 30)
    nanogpt = 23 / (1 + np.exp(-(x + 5) / 7.5))
    np.testing.assert_allclose(
        Softcap(form="tanh", cap=30.0)(torch.from_numpy(x)), gemma, rtol=1e-14
    )
    sigmoid = Softcap(form="sigmoid", cap=23.0)
    np.testing.assert_allclose(sigmoid(torch.from_numpy(x)), nanogpt, rtol=1e-14)
    assert (sigmoid.shift, sigmoid.width / 2) == (5.0, 7.5), "exactly"


@pytest.mark.parametrize("form", FORMS)
def test_all_caps_have_one_shape(form: Literal["tanh", "sigmoid"]) -> None:
    x = torch.linspace(-3, 3, 61, dtype=torch.float64)
    shapes = [Softcap(form=form, cap=cap)(cap * x) / cap for cap in (5.0, 23.0, 30.0)]
    for shape in shapes[1:]:
        torch.testing.assert_close(shape, shapes[0], rtol=1e-13, atol=0)


@every_cap
def test_a_pass_is_the_function_but_for_a_constant_and_its_slope_the_difference(
    form: Literal["tanh", "sigmoid"], cap: float
) -> None:
    function, x = (
        Softcap(form=form, cap=cap),
        torch.linspace(-3 * cap, 3 * cap, 241, dtype=torch.float64),
    )
    f, slope = applied(function, x)
    constant = 0.0 if form == "tanh" else cap / 2
    torch.testing.assert_close(f + constant, function(x), rtol=1e-12, atol=1e-13 * cap)
    step = 1e-5 * cap
    differences = (function(x + step) - function(x - step)) / (2 * step)
    torch.testing.assert_close(slope, differences, rtol=1e-6, atol=1e-9)


@every_cap
def test_in_float32_slopes_keep_their_digits_where_the_function_is_flat(
    form: Literal["tanh", "sigmoid"], cap: float
) -> None:
    function = Softcap(form=form, cap=cap)
    t = np.linspace(-30, 30, 101)
    x = torch.tensor(t * function.width - function.shift, dtype=torch.float32)
    _, slope = applied(function, x)
    exact_t = (x.double().numpy() + function.shift) / function.width
    # t is known to 1e-7 of the size of x and the shift, and the slope changes by twice as large a
    # share.
    bound = 1e-6 + 4e-7 * (30 + abs(function.shift / function.width))
    np.testing.assert_allclose(
        slope, function.height / function.width / np.cosh(exact_t) ** 2, rtol=bound
    )


@every_cap
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_largest_logits_have_a_value_and_no_slope(
    form: Literal["tanh", "sigmoid"], cap: float, dtype: torch.dtype
) -> None:
    largest = torch.finfo(dtype).max
    f, slope = applied(
        Softcap(form=form, cap=cap),
        torch.tensor([-math.inf, -largest, largest, math.inf], dtype=dtype),
    )
    height = cap if form == "tanh" else cap / 2
    assert f.tolist() == [-height, -height, height, height]
    assert slope.tolist() == [0.0] * 4


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("cap", [0.5, 5.0, 10.0, 30.0])
def test_a_start_is_as_good_as_the_cap_allows_and_nowhere_flat(
    form: Literal["tanh", "sigmoid"], cap: float
) -> None:
    """At Zipf's frequencies of 2,000 words, whose logarithms are 8 apart."""
    function = Softcap(form=form, cap=cap)
    log_p = torch.log_softmax(-torch.arange(1.0, 2001.0).log(), 0)
    bias = centred_bias(function, log_p)
    _, slope = applied(function, bias)
    assert slope.min() >= 0.41 * function.height / function.width
    got = torch.log_softmax(function(bias), 0)
    excess = float((log_p.exp() * (log_p - got)).sum())
    reached = function.height * 2 * math.tanh(1.0)
    if reached > 8.0:
        torch.testing.assert_close(got, log_p, rtol=0, atol=1e-4)
    # Between nothing and what a distribution without any difference between words would lack.
    assert -1e-5 < excess < float((log_p.exp() * log_p).sum()) + math.log(2000)
    assert (got.diff() <= 1e-5).all(), "in the order of the frequencies"


@pytest.mark.parametrize(
    "layer", [SoftcapConfig(cap=0.5), SoftcapConfig(form="sigmoid", cap=5.0)], ids=str
)
def test_a_small_cap_trains_from_a_scaled_start(layer: SoftcapConfig) -> None:
    config = tiny.trial(output_layer=layer, optimizer="adam", learning_rate=0.01)
    config = config.model_copy(
        update={"model": config.model.model_copy(update={"start": "scaled"})}
    )
    trainer = Trainer(config, tiny.corpus(), Runtime())
    assert isinstance(trainer.model.output, PointwiseSoftmax)
    before = trainer.model.output.bias_V.detach().clone()
    for _ in range(20):
        trainer.step()
    after = trainer.model.output.bias_V.detach()
    assert math.isfinite(trainer.epoch_loss) and after.isfinite().all()
    assert (after != before).all()
