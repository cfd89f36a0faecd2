"""The Triton kernels of the cross-entropy against the formulas in float64: compiled where there is
a GPU, and otherwise by Triton's interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
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
    MonotoneNnConfig,
    MosConfig,
    MosPlifConfig,
    OutputLayerConfig,
    SigSoftmaxConfig,
    SoftcapConfig,
    SoftmaxConfig,
)
from trainables.output_layers import (
    LayerShape,
    Models,
    PiecewiseLinear,
    Pointwise,
    PointwiseSoftmax,
    build_output_layer,
    fused,
    fused_cross_entropy,
    kernels_fit,
)
from trainables.stack.loss import stacked_cross_entropy

DEVICE = "cuda" if torch.cuda.is_available() and "TRITON_INTERPRET" not in os.environ else "cpu"
pytest.importorskip("triton", reason="Triton is there for Linux alone")
# Where a block reaches beyond V, numbers of no meaning go through the same steps before they are
# dropped.
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
"""Of the models of a stack: equal in kind, not in parameters."""
every_bend = pytest.mark.parametrize("configs", BENDS, ids=lambda configs: configs[0].name)


@pytest.fixture(autouse=True)
def _kernels_in_small_blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    from tests.support import gpu_arithmetic
    from trainables.output_layers import kernels

    if DEVICE == "cpu":
        gpu_arithmetic.emulate(monkeypatch)
        monkeypatch.setattr(kernels, "MOST_COLUMNS", 32)
        monkeypatch.setattr(kernels, "MOST_BYTES", 64)
    monkeypatch.setattr(fused, "runs_triton", lambda device: device.type == DEVICE)
    yield


@dataclass
class Case:
    """What a stack's loss takes. The weights W are the identity, so that hidden states are
    products."""

    configs: Sequence[OutputLayerConfig]
    functions: list[Pointwise]
    parameters: list[Tensor]
    models: Models
    rows: tuple[Tensor, Tensor]

    def double(self) -> Case:
        models = Models(*(tensor.double() for tensor in self.models))
        return Case(
            self.configs, self.functions, [p.double() for p in self.parameters], models, self.rows
        )

    def leaves(self) -> list[Tensor]:
        """By which there are gradients; they follow from here."""
        self.models = Models(*(tensor.detach().clone().requires_grad_() for tensor in self.models))
        self.parameters = [
            parameter.detach().clone().requires_grad_() for parameter in self.parameters
        ]
        return [*self.models, *self.parameters]


def case_of(
    configs: Sequence[OutputLayerConfig],
    contexts: int,
    experts: int,
    vocabulary: int,
    scale: float = 3.0,
    seed: int = 0,
) -> Case:
    """In every model but the first, some of the last rows weigh nothing."""
    draw = torch.Generator().manual_seed(seed)
    shape = LayerShape(vocabulary_size=vocabulary, embedding_width=3, context_width=3)
    functions = []
    for config in configs:
        layer = build_output_layer(config, shape)
        layer.initialise(draw)
        assert isinstance(layer, PointwiseSoftmax)
        functions.append(layer.function)
    bias = torch.randn(len(configs), vocabulary, generator=draw)
    logits = scale * torch.randn(
        len(configs), contexts, experts, vocabulary, generator=draw, dtype=torch.float64
    )
    if isinstance(function := functions[0], PiecewiseLinear):
        # Away from the ends of intervals, where the derivative is whichever one takes.
        place = (logits + function.limit) / function.width
        logits = (
            place.floor() + 0.02 + 0.96 * place.frac().abs()
        ) * function.width - function.limit
    product = (logits - bias[:, None, None]).float()
    prior = torch.randn(len(configs), contexts, experts, generator=draw).log_softmax(2)
    counts = [
        contexts,
        *torch.randint(1, max(2, contexts), (len(configs) - 1,), generator=draw).tolist(),
    ]
    weights = torch.stack([(torch.arange(contexts) < count) / count for count in counts])
    targets = torch.randint(vocabulary, (len(configs), contexts), generator=draw)
    identity = torch.eye(vocabulary).expand(len(configs), -1, -1)
    parameters = [
        torch.stack(same) for same in zip(*(f.parameters() for f in functions), strict=True)
    ]
    models = Models(*(tensor.to(DEVICE) for tensor in (product, prior, identity, bias)))
    to_device = [parameter.detach().to(DEVICE) for parameter in parameters]
    return Case(configs, functions, to_device, models, (targets.to(DEVICE), weights.to(DEVICE)))


def true_losses(case: Case) -> Tensor:
    """Every model's loss, as one writes it down."""
    hidden, prior, weight, bias = case.models
    targets_GN, weights_GN = case.rows
    logits = torch.einsum("gnkd,gvd->gnkv", hidden, weight) + bias[:, None, None]
    names = [f"function.{name}" for name, _ in case.functions[0].named_parameters()]
    bent = torch.stack([
        formulas.f(config, dict(zip(names, (p[g] for p in case.parameters), strict=True)), logits[g])
        for g, config in enumerate(case.configs)
    ])  # fmt: skip
    log_p = (prior[..., None] + bent - bent.logsumexp(3, keepdim=True)).logsumexp(2)
    return -(weights_GN * log_p.gather(2, targets_GN[..., None]).squeeze(2)).sum(1)


def fused_losses(case: Case) -> tuple[Tensor, list[Tensor]]:
    """By the kernels, and the gradients."""
    gradients = Models(*map(torch.zeros_like, case.models))
    losses, by_parameters = fused_cross_entropy(
        case.models, case.rows, case.functions, case.parameters, gradients
    )
    return losses, [*gradients, *by_parameters]


@every_bend
@given(
    contexts=st.integers(1, 18), experts=st.integers(1, 2), vocabulary=st.integers(2, 40), chunk=st.integers(9, 80),
    scale=st.sampled_from([0.1, 3.0, 1e3]), seed=st.integers(0, 1000),
)  # fmt: skip
@settings(max_examples=4, deadline=None)
def test_losses_and_gradients_equal_the_formulas(
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
        losses, gradients = fused_losses(case)
    truth = case.double()
    leaves = truth.leaves()
    true = true_losses(truth)
    # Logits have 24 bits of their size, and functions up to four times as steep.
    bound = 2e-6 * max(1.0, scale)
    torch.testing.assert_close(losses, true.detach(), rtol=bound, atol=bound)
    true_gradients = torch.autograd.grad(true.sum(), leaves)
    frozen = isinstance(configs[0], LmsPlifFrozenConfig)
    for gradient, by in zip(gradients[: 4 if frozen else None], true_gradients, strict=False):
        tolerance = bound * max(1.0, float(by.abs().max()))
        torch.testing.assert_close(gradient.double(), by, rtol=bound, atol=tolerance)
    if frozen:
        assert not gradients[4].any()


@every_bend
def test_gradients_are_the_differences_of_the_formulas(
    configs: Sequence[OutputLayerConfig],
) -> None:
    case = case_of(configs, contexts=3, experts=2, vocabulary=11)
    _, gradients = fused_losses(case)
    truth, step = case.double(), 1e-6
    models, parameters = (
        truth.models,
        [] if isinstance(configs[0], LmsPlifFrozenConfig) else truth.parameters,
    )
    inputs = [models.hidden_GNKD, models.log_prior_GNK, models.bias_GV, *parameters]
    for of, tensor in zip([0, 1, 3, 4], inputs, strict=False):
        gradient, flat = gradients[of].view(-1), tensor.view(-1)
        for i in range(len(flat)):
            flat[i] += step
            above = true_losses(truth).sum()
            flat[i] -= 2 * step
            below = true_losses(truth).sum()
            flat[i] += step
            assert gradient[i].item() == pytest.approx(
                float(above - below) / (2 * step), abs=3e-6, rel=1e-4
            )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rows_that_weigh_nothing_get_no_gradient_and_others_that_of_their_dtype(
    dtype: torch.dtype,
) -> None:
    case = case_of(BENDS[1], contexts=17, experts=2, vocabulary=37)
    hidden = case.models.hidden_GNKD.to(dtype)
    case.models = case.models._replace(hidden_GNKD=hidden)
    losses, gradients = fused_losses(case)
    case.models = case.models._replace(hidden_GNKD=hidden.float())
    truth = case.double()
    true = true_losses(truth)
    torch.testing.assert_close(losses, true, rtol=2e-6, atol=2e-6)
    leaves = truth.leaves()
    by_hidden, *_ = torch.autograd.grad(true_losses(truth).sum(), leaves)
    empty = case.rows[1] == 0
    assert empty.any() and not gradients[0][empty].any()
    assert gradients[0].dtype == dtype
    of_dtype = 1e-5 if dtype == torch.float32 else 2.0**-7
    torch.testing.assert_close(gradients[0].double(), by_hidden, rtol=of_dtype, atol=1e-7)
    assert gradients[2].dtype == torch.float32, "the weights' gradient is summed in their dtype"


@every_bend
def test_a_nan_among_the_logits_ends_as_a_nan_in_its_model_alone(
    configs: Sequence[OutputLayerConfig],
) -> None:
    case = case_of(configs, contexts=3, experts=1, vocabulary=6)
    case.models.hidden_GNKD[0, 1, 0, 2] = torch.nan
    losses, gradients = fused_losses(case)
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
@pytest.mark.parametrize("product_dtype", [None, torch.bfloat16])
def test_a_layer_trains_with_kernels_as_without(
    config: OutputLayerConfig, product_dtype: torch.dtype | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden, weight, targets = (tensor.to(DEVICE) for tensor in formulas.inputs(13, 5, 41))
    layer = formulas.layer_of(config, 41, 5).float().to(DEVICE)
    leaves = {"hidden": hidden.float().requires_grad_(), "weight": weight.float().requires_grad_()}
    leaves |= dict(layer.named_parameters())
    layer.product_dtype = product_dtype

    def loss_and_gradients() -> tuple[Tensor, Tensor, Sequence[Tensor]]:
        loss = layer.loss(leaves["hidden"].unsqueeze(1), leaves["weight"], targets)
        with torch.no_grad():
            alone = layer.loss(leaves["hidden"].unsqueeze(1), leaves["weight"], targets)
        return loss.detach(), alone, torch.autograd.grad(3.0 * loss, list(leaves.values()))

    loss, alone, gradients = loss_and_gradients()
    assert loss == alone
    monkeypatch.setattr(fused, "runs_triton", lambda _: False)
    expected, _, expected_gradients = loss_and_gradients()
    torch.testing.assert_close(loss, expected, rtol=1e-6, atol=0)
    for name, gradient, other in zip(leaves, gradients, expected_gradients, strict=True):
        difference = (gradient - other).norm() / other.norm()
        # In float32's last bit they differ; it may turn a rounding to bf16 the other way.
        assert difference < (1e-2 if product_dtype is not None else 3e-6), (name, difference)


@every_bend
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_stack_trains_with_kernels_as_without(
    configs: Sequence[OutputLayerConfig], dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = case_of(configs, contexts=9, experts=2, vocabulary=33)
    case.models = case.models._replace(hidden_GNKD=case.models.hidden_GNKD.to(dtype))
    leaves = case.leaves()

    def losses_and_gradients() -> tuple[Tensor, ...]:
        losses = stacked_cross_entropy(*case.models, case.rows, case.functions, case.parameters)
        return losses.detach(), *torch.autograd.grad(
            (losses * torch.tensor([1.0, 3.0], device=DEVICE)).sum(), leaves
        )

    with_kernels = losses_and_gradients()
    monkeypatch.setattr(fused, "runs_triton", lambda _: False)
    frozen = isinstance(configs[0], LmsPlifFrozenConfig)  # whose gradient nobody reads
    for ours, other in list(zip(with_kernels, losses_and_gradients(), strict=True))[
        : 5 if frozen else None
    ]:
        # In float32's last bit they differ; it may turn a rounding to bf16 the other way.
        assert (ours - other).norm() <= (1e-5 if dtype == torch.float32 else 1e-2) * other.norm()


def test_a_cpu_and_what_has_no_kernel_go_without(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = LayerShape(vocabulary_size=5, embedding_width=3, context_width=3)
    network = build_output_layer(MonotoneNnConfig(units=3), shape)
    assert isinstance(network, PointwiseSoftmax)
    smooth, weight = case_of(BENDS[1], 1, 1, 5).functions, torch.zeros(2, 5, 3, device=DEVICE)
    assert kernels_fit(smooth, weight)
    assert not kernels_fit([network.function], weight)
    assert not kernels_fit(smooth, weight.double())
    monkeypatch.undo()
    assert not kernels_fit(smooth, weight.cpu())


def test_a_cpu_imports_no_triton() -> None:
    source = (
        "import sys, torch; from trainables.config import *; from trainables.output_layers import "
        "*\n"
        "shape = LayerShape(vocabulary_size=5, embedding_width=3, context_width=3)\n"
        "layer = build_output_layer(LmsPlifConfig(knots=7), shape)\n"
        "hidden = torch.randn(2, 2, 3, requires_grad=True)\n"
        "layer.loss(hidden, torch.randn(5, 3), torch.tensor([1, 2, 3, 4])).backward()\n"
        "from tests.support import stacked_layers; stacked_layers.results(stacked_layers.layer(2, "
        "3, 4))\n"
        "sys.exit('triton' in sys.modules)"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    assert (
        subprocess.run([sys.executable, "-c", source], env=environment, check=False).returncode == 0
    )
