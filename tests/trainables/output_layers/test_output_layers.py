from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from tests.support import output_layer_formulas as formulas
from tests.support.output_layer_formulas import (
    inputs,
    layer_of,
    leaves_of,
    loss_and_gradients,
    parameters_of,
    truth_and_gradients,
)
from trainables.config import (
    GssConfig,
    LmsPlifConfig,
    MosConfig,
    OutputLayerConfig,
)
from trainables.device import integer_running_sum
from trainables.output_layers import (
    LayerShape,
    MixtureOfSoftmaxes,
    OutputLayer,
    PiecewiseLinear,
    Pointwise,
    PointwiseSoftmax,
)

CONFIGS = (
    *formulas.EVERY_LAYER,
    GssConfig(c=2.0, k=1.25),
    GssConfig(c=0.5, k=0.5),
    LmsPlifConfig(knots=2, limit=20.0),
    MosConfig(mixtures=1, latent_dropout=0.0),
)
every_layer = pytest.mark.parametrize(
    "config", CONFIGS, ids=lambda config: config.model_dump_json()
)


@every_layer
@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4])
def test_log_p_equals_the_formula(config: OutputLayerConfig, scale: float) -> None:
    hidden, weight, _ = inputs(7, 3, 11, scale)
    layer = layer_of(config, 11)
    log_p = layer.log_probabilities(hidden, weight).detach()
    torch.testing.assert_close(
        log_p, formulas.log_p(config, parameters_of(layer), hidden, weight), rtol=1e-12, atol=1e-11
    )
    with torch.no_grad():  # measurements also overwrite chunks in place
        measured = layer.log_probabilities(hidden, weight)
    torch.testing.assert_close(measured, log_p, rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(log_p.exp().sum(1), 1.0, rtol=0, atol=1e-12)


@every_layer
@given(
    rows=st.integers(1, 9), width=st.integers(1, 4), vocabulary=st.integers(2, 12),
    chunk=st.integers(1, 12), scale=st.sampled_from([0.1, 1.0, 20.0, 1e4]),
    seed=st.integers(0, 1000), probabilities=st.booleans(),
)  # fmt: skip
@settings(max_examples=25, deadline=None)
def test_loss_and_gradients_equal_formulas(
    config: OutputLayerConfig,
    rows: int,
    width: int,
    vocabulary: int,
    chunk: int,
    scale: float,
    seed: int,
    probabilities: bool,
) -> None:
    hidden, weight, targets = inputs(rows, width, vocabulary, scale, seed)
    if probabilities:  # some expected values are nearly zero
        generator = torch.Generator().manual_seed(seed)
        logits = 10 * torch.randn(rows, vocabulary, dtype=torch.float64, generator=generator)
        targets = torch.softmax(logits, dim=1)
    layer = layer_of(config, vocabulary, width)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trainables.output_layers.cross_entropy.chunk_rows", lambda *_: chunk)
        loss, gradients = loss_and_gradients(layer, hidden, weight, targets)
    truth, true_gradients = truth_and_gradients(config, layer, hidden, weight, targets)
    assert loss == pytest.approx(truth, rel=1e-10, abs=1e-10)
    assert gradients.keys() == true_gradients.keys()
    for name, gradient in gradients.items():
        # The truth is only as precise as its logits, which have 16 digits. The gradient by the
        # hidden state multiplies their error by weights of that size once more.
        true = true_gradients[name]
        bound = max(1.0, float(true.abs().max())) + 1e-4 * scale**2
        torch.testing.assert_close(
            gradient, true, rtol=1e-10, atol=1e-10 * bound, msg=f"gradient by {name}"
        )


def test_impossible_target_has_finite_gradients() -> None:
    # Probabilities near e^-500 are zero in float32, and so is their product with a prior.
    config = MosConfig(mixtures=3)
    hidden, weight, targets = inputs(4, 3, 6)
    layer = layer_of(config, 6)
    bias = parameters_of(layer)["bias_V"]
    with torch.no_grad():
        bias[targets[0]] = -500.0
    targets = targets[:1].expand(4).contiguous()
    truth, true_gradients = truth_and_gradients(config, layer, hidden, weight, targets)
    probability = formulas.log_p(config, parameters_of(layer), hidden, weight)[:, targets[0]].exp()
    assert (probability < 1e-40).all()
    loss, gradients = loss_and_gradients(layer.float(), hidden.float(), weight.float(), targets)
    assert loss == pytest.approx(truth, rel=1e-6)
    for name, gradient in gradients.items():
        assert torch.isfinite(gradient).all(), name
        torch.testing.assert_close(gradient.double(), true_gradients[name], rtol=1e-4, atol=1e-5)


class Cubic(Pointwise):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.tensor(0.3, dtype=torch.float64))
        self.unused = nn.Parameter(torch.ones(2, dtype=torch.float64))
        self.fixed = nn.Parameter(torch.tensor(0.5, dtype=torch.float64), requires_grad=False)

    def forward(self, logits: Tensor) -> Tensor:
        return self.fixed * logits + self.a * logits**3


class InPlace(Cubic):
    def forward(self, logits: Tensor) -> Tensor:
        return logits.mul_(self.a).tanh_()


@pytest.mark.parametrize("function", [Cubic, InPlace])
@pytest.mark.parametrize("mixtures", [None, 2])
def test_missing_pass_has_exact_gradients(function: type[Pointwise], mixtures: int | None) -> None:
    shape = LayerShape(vocabulary_size=9, embedding_width=3, context_width=3)
    hidden, weight, targets = inputs(8, 3, 9)
    layer: OutputLayer = PointwiseSoftmax(shape, function())
    if mixtures is not None:
        layer = MixtureOfSoftmaxes(
            shape, mixtures=mixtures, latent_dropout=0.0, function=function()
        )
    layer.double().initialise(torch.Generator().manual_seed(1))
    loss, gradients = loss_and_gradients(layer, hidden, weight, targets)
    leaves = leaves_of(layer, hidden, weight)
    log_p = layer.log_probabilities(leaves["hidden"], leaves["weight"])
    plain = torch.nn.functional.nll_loss(log_p, targets)
    true = torch.autograd.grad(3.0 * plain, list(leaves.values()), materialize_grads=True)
    assert loss == pytest.approx(plain.item(), rel=1e-12)
    torch.testing.assert_close(list(gradients.values()), list(true))


def test_integer_running_sum() -> None:
    """A GPU must repeat this sum bit for bit. On a CPU, the test can compare only the values."""
    values = torch.randn(100_000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(integer_running_sum(values), values.cumsum(0), rtol=0, atol=1e-9)
    assert not integer_running_sum(torch.zeros(5, dtype=torch.float64)).any()


def test_nan_logit_ends_as_nan() -> None:
    hidden, weight, targets = inputs(4, 3, 6)
    hidden[0, 0] = torch.nan
    layer = layer_of(LmsPlifConfig(knots=7, limit=3.0), 6)
    assert layer.loss(hidden.unsqueeze(1), weight.requires_grad_(), targets).isnan()
    assert layer.log_probabilities(hidden, weight)[0].isnan().all()


@pytest.mark.parametrize("knots", [99_999, 100_000, 1_000_000])
def test_float32_plif_finds_the_interval(knots: int) -> None:
    """In float32, counting intervals from the left end would misplace 2% of the logits near 0."""
    function = PiecewiseLinear(knots, limit=20.0, learning_rate=0.02)
    x = torch.randn(20_000, generator=torch.Generator().manual_seed(0))
    interval = torch.empty(len(x), dtype=torch.int64)
    function.locate_(x.clone(), interval, torch.empty_like(x))
    true = ((x.double() + 20.0) * (knots / 40.0)).floor().long()
    assert (interval != true).float().mean() < 0.002
    assert ((interval - true).abs() <= 1).all()
