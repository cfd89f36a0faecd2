"""Tests of Triton's cross-entropy against float64 formulas.

Without a GPU, Triton interprets the kernels.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.support import output_layer_formulas as formulas
from trainables.config import (
    GssConfig,
    LmsPlifConfig,
    LmsPlifFrozenConfig,
    MosConfig,
    MosPlifConfig,
    OutputLayerConfig,
    SigSoftmaxConfig,
    SoftcapConfig,
    SoftmaxConfig,
)
from trainables.output_layers import (
    Inputs,
    LayerShape,
    PiecewiseLinear,
    Pointwise,
    PointwiseSoftmax,
    build_output_layer,
    fused,
)

DEVICE = "cuda" if torch.cuda.is_available() and "TRITON_INTERPRET" not in os.environ else "cpu"
pytest.importorskip("triton", reason="Triton exists for Linux only")
# A block that extends past V computes meaningless numbers and then drops them.
pytestmark = pytest.mark.filterwarnings("ignore:.* encountered in :RuntimeWarning")
BENDS: tuple[tuple[OutputLayerConfig, ...], ...] = (
    (SoftmaxConfig(), SoftmaxConfig()),
    (GssConfig(c=-1.5, k=2.5), GssConfig(c=2.0, k=0.5)),
    (SigSoftmaxConfig(), SoftmaxConfig()),
    (SoftcapConfig(cap=5.0), SoftcapConfig(form="sigmoid", cap=23.0)),
    (LmsPlifConfig(knots=7, limit=3.0),) * 2,
    (LmsPlifConfig(knots=2, limit=20.0),) * 2,
    (LmsPlifFrozenConfig(knots=10, limit=5.0),) * 2,
)
every_bend = pytest.mark.parametrize("configs", BENDS, ids=lambda configs: configs[0].name)


@pytest.fixture(autouse=True)
def _kernels_in_small_blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    from tests.support import gpu_arithmetic
    from trainables.output_layers import kernels

    if DEVICE == "cpu":
        gpu_arithmetic.emulate(monkeypatch)
        monkeypatch.setattr(kernels, "MAX_COLUMNS", 32)
        monkeypatch.setattr(kernels, "MAX_BYTES", 64)
    monkeypatch.setattr(fused, "runs_triton", lambda device: device.type == DEVICE)
    yield


@dataclass
class Case:
    """Inputs of a stack's loss. W is the identity, so the hidden states are the logits."""

    configs: Sequence[OutputLayerConfig]
    functions: list[Pointwise]
    parameters: list[Tensor]
    inputs: Inputs
    rows: tuple[Tensor, Tensor]


def case_of(
    configs: Sequence[OutputLayerConfig],
    contexts: int,
    experts: int,
    vocabulary: int,
    scale: float = 3.0,
    seed: int = 0,
) -> Case:
    draw = torch.Generator().manual_seed(seed)
    shape = LayerShape(vocabulary_size=vocabulary, embedding_width=3, context_width=3)
    functions = []
    for config in configs:
        layer = build_output_layer(config, shape)
        layer.initialise(draw)
        assert isinstance(layer, PointwiseSoftmax)
        functions.append(layer.function)
    bias = torch.randn(len(configs), vocabulary, generator=draw)
    models = len(configs)
    logits = torch.randn(
        models, contexts, experts, vocabulary, generator=draw, dtype=torch.float64
    ).mul_(scale)
    if isinstance(function := functions[0], PiecewiseLinear):
        # Avoid the knots: the derivative there depends on the side.
        position = (logits + function.limit) / function.width
        logits = (
            position.floor() + 0.02 + 0.96 * position.frac().abs()
        ) * function.width - function.limit
    product = (logits - bias[:, None, None]).float()
    prior = torch.randn(models, contexts, experts, generator=draw).log_softmax(2)
    fewer = torch.randint(1, max(2, contexts), (models - 1,), generator=draw).tolist()
    weights = torch.stack([(torch.arange(contexts) < n) / n for n in (contexts, *fewer)])
    targets = torch.randint(vocabulary, (models, contexts), generator=draw)
    identity = torch.eye(vocabulary).expand(models, -1, -1)
    parameters = [
        torch.stack(tensors) for tensors in zip(*(f.parameters() for f in functions), strict=True)
    ]
    inputs = Inputs(*(tensor.to(DEVICE) for tensor in (product, prior, identity, bias)))
    to_device = [parameter.detach().to(DEVICE) for parameter in parameters]
    return Case(configs, functions, to_device, inputs, (targets.to(DEVICE), weights.to(DEVICE)))


def true_results(case: Case) -> tuple[Tensor, Sequence[Tensor]]:
    leaves = [tensor.double().requires_grad_() for tensor in (*case.inputs, *case.parameters)]
    hidden, prior, weight, bias, *parameters = leaves
    targets_GN, weights_GN = case.rows
    logits = torch.einsum("gnkd,gvd->gnkv", hidden, weight) + bias[:, None, None]
    names = [f"function.{name}" for name, _ in case.functions[0].named_parameters()]
    function_values = torch.stack([
        formulas.f(config, dict(zip(names, (p[g] for p in parameters), strict=True)), logits[g])
        for g, config in enumerate(case.configs)
    ])  # fmt: skip
    log_p = (
        prior[..., None] + function_values - function_values.logsumexp(3, keepdim=True)
    ).logsumexp(2)
    losses = -(weights_GN * log_p.gather(2, targets_GN[..., None]).squeeze(2)).sum(1)
    return losses.detach(), torch.autograd.grad(losses.sum(), leaves)


def fused_results(case: Case) -> tuple[Tensor, list[Tensor]]:
    gradients = Inputs(*map(torch.zeros_like, case.inputs))
    losses, by_parameters = fused.fused_cross_entropy(
        case.inputs, case.rows, case.functions, case.parameters, gradients
    )
    return losses, [*gradients, *by_parameters]


@every_bend
@given(
    contexts=st.integers(1, 9), experts=st.integers(1, 2), vocabulary=st.integers(2, 40),
    chunk=st.integers(9, 80),
    scale=st.sampled_from([0.1, 3.0, 1e3]), seed=st.integers(0, 1000),
)  # fmt: skip
@settings(max_examples=4, deadline=None)
def test_losses_and_gradients_equal_formulas(
    configs: Sequence[OutputLayerConfig],
    contexts: int,
    experts: int,
    vocabulary: int,
    chunk: int,
    scale: float,
    seed: int,
) -> None:
    case = case_of(configs, contexts, experts, vocabulary, scale, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            fused, "CHUNK_BYTES", 4 * chunk * (vocabulary + -vocabulary % fused.ALIGNMENT)
        )
        losses, gradients = fused_results(case)
    true_losses, true_gradients = true_results(case)
    # Logits have 24 bits of precision, and functions are up to four times as steep.
    bound = 2e-6 * max(1.0, scale)
    torch.testing.assert_close(losses, true_losses, rtol=bound, atol=bound)
    frozen = isinstance(configs[0], LmsPlifFrozenConfig)
    for gradient, by in zip(gradients[: 4 if frozen else None], true_gradients, strict=False):
        tolerance = bound * max(1.0, float(by.abs().max()))
        torch.testing.assert_close(gradient.double(), by, rtol=bound, atol=tolerance)
    assert not gradients[0][case.rows[1] == 0].any()
    if frozen:
        assert not gradients[4].any()


@every_bend
def test_nan_stays_in_its_model(configs: Sequence[OutputLayerConfig]) -> None:
    case = case_of(configs, contexts=3, experts=1, vocabulary=6)
    case.inputs.hidden[0, 1, 0, 2] = torch.nan
    losses, gradients = fused_results(case)
    assert losses.isnan().tolist() == [True, False]
    assert gradients[0][0, 1].isnan().all() and not gradients[0][1].isnan().any()


SINGLE: tuple[OutputLayerConfig, ...] = (
    SoftmaxConfig(),
    GssConfig(c=-1.5, k=2.5),
    SoftcapConfig(cap=15.0),
    LmsPlifConfig(knots=31, limit=3.0),
    MosConfig(mixtures=3, latent_dropout=0.0),
    MosPlifConfig(mixtures=2, latent_dropout=0.0, knots=20, limit=3.0),
)


@pytest.mark.parametrize("config", SINGLE, ids=lambda config: config.name)
def test_kernels_change_no_training(
    config: OutputLayerConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden, weight, targets = (tensor.to(DEVICE) for tensor in formulas.inputs(13, 5, 41))
    layer = formulas.layer_of(config, 41, 5).float().to(DEVICE)
    inputs = hidden.float(), weight.float(), targets
    loss, gradients = formulas.loss_and_gradients(layer, *inputs)
    monkeypatch.setattr(fused, "runs_triton", lambda _: False)
    expected, expected_gradients = formulas.loss_and_gradients(layer, *inputs)
    assert loss == pytest.approx(expected, rel=1e-6)
    for name, other in expected_gradients.items():
        assert (gradients[name] - other).norm() < 3e-6 * other.norm(), name
