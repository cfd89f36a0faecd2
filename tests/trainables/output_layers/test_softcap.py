from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pytest
import torch

from trainables.output_layers import Pointwise, Softcap
from trainables.output_layers.pointwise import centred_bias

FORMS: tuple[Literal["tanh", "sigmoid"], ...] = ("tanh", "sigmoid")
every_cap = pytest.mark.parametrize(
    ("form", "cap"), [(form, cap) for form in FORMS for cap in (0.5, 5.0, 23.0, 300.0)]
)


def applied(function: Pointwise, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return f(x), up to a constant, and f'(x), as the chunked loss computes them."""
    chunk_pass = function.chunk_pass(function, x.unsqueeze(0))
    f, slope = x.clone().unsqueeze(0), torch.ones(1, len(x), dtype=x.dtype)
    chunk_pass.apply_(f)
    chunk_pass.pull_back_(slope)
    return f[0], slope[0]


@every_cap
def test_slope_is_precise_in_float32(form: Literal["tanh", "sigmoid"], cap: float) -> None:
    function = Softcap(form=form, cap=cap)
    t = np.linspace(-30, 30, 101)
    x = torch.tensor(t * function.width - function.shift, dtype=torch.float32)
    _, slope = applied(function, x)
    exact_t = (x.double().numpy() + function.shift) / function.width
    # t is known to 1e-7 of x and the shift; the slope's relative error is twice that.
    bound = 1e-6 + 4e-7 * (30 + abs(function.shift / function.width))
    np.testing.assert_allclose(
        slope, function.height / function.width / np.cosh(exact_t) ** 2, rtol=bound
    )


@every_cap
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_largest_logits_have_no_slope(
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
def test_start_is_near_the_frequencies(form: Literal["tanh", "sigmoid"], cap: float) -> None:
    """Word frequencies follow Zipf's law: over 2,000 words, their logarithms differ by up to 8."""
    function = Softcap(form=form, cap=cap)
    log_p = torch.log_softmax(-torch.arange(1.0, 2001.0).log(), 0)
    bias = centred_bias(function, log_p)
    _, slope = applied(function, bias)
    assert slope.min() >= 0.41 * function.height / function.width
    start = torch.log_softmax(function(bias), 0)
    if function.height * 2 * math.tanh(1.0) > 8.0:  # f can reach these frequencies
        torch.testing.assert_close(start, log_p, rtol=0, atol=1e-4)
    assert (start.diff() <= 1e-5).all(), "frequent words must have higher probabilities"
