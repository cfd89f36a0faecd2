"""The loss of a stack by its kernels at their real block sizes, against float64 on the same device.

On a CPU by Triton's interpreter, with a GPU's errors. Rows are longer than V, and come in several
chunks."""

from __future__ import annotations

from itertools import product
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from torch import Tensor

from tests.support import output_layer_formulas as formulas
from trainables.config import (
    GssConfig,
    LmsPlifConfig,
    OutputLayerConfig,
    SoftcapConfig,
    SoftmaxConfig,
)
from trainables.device import products_in
from trainables.output_layers import (
    Inputs,
    LayerShape,
    PointwiseSoftmax,
    build_output_layer,
    cross_entropies,
    fused,
)

pytest.importorskip("triton", reason="Triton exists for Linux only")
EXPERTS, WIDTH = 15, 24
PIECEWISE = LmsPlifConfig(knots=31, limit=3.0)
LAYERS = (SoftmaxConfig(), GssConfig(c=-1.5, k=2.5), SoftcapConfig(cap=15.0), PIECEWISE)
CASES: list[tuple[Any, ...]] = [
    (PIECEWISE, torch.bfloat16, "cpu", 8_195, 3),
    (PIECEWISE, torch.float32, "cpu", 1_003, 3),
    *product(LAYERS, (torch.float32, torch.bfloat16), ["cuda"], (10_000, 33_278), (3, 16)),
]


@pytest.mark.filterwarnings("ignore:.* encountered in :RuntimeWarning")
@pytest.mark.parametrize(
    ("config", "dtype", "device", "vocabulary", "models"),
    [pytest.param(*case, marks=[pytest.mark.gpu] * (case[2] == "cuda")) for case in CASES],
    indirect=["device"],
)
def test_losses_and_gradients_equal_the_formulas(
    config: OutputLayerConfig,
    dtype: torch.dtype,
    device: str,
    vocabulary: int,
    models: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tests.support import gpu_arithmetic
    from trainables.output_layers import kernels

    contexts, chunk = (37, 16) if device == "cuda" else (2, 1)
    if device == "cpu":
        if torch.cuda.is_available():
            pytest.skip("Triton's interpreter runs only if there is no GPU")
        gpu_arithmetic.emulate(monkeypatch)
        if vocabulary > 2_000:  # one number a thread: the interpreter takes a millisecond for each
            monkeypatch.setattr(kernels, "WARPS", 32)
        monkeypatch.setattr(fused, "runs_triton", lambda _: True)
    logits = models * EXPERTS * chunk * (vocabulary + -vocabulary % fused.ALIGNMENT)
    monkeypatch.setattr(fused, "CHUNK_BYTES", logits * dtype.itemsize)
    launches = [Mock(wraps=kernels.forward), Mock(wraps=kernels.backward_)]
    monkeypatch.setattr(kernels, "forward", launches[0])
    monkeypatch.setattr(kernels, "backward_", launches[1])
    shape = LayerShape(vocabulary_size=vocabulary, embedding_width=WIDTH, context_width=WIDTH)
    layer, draw = build_output_layer(config, shape), torch.Generator().manual_seed(0)
    layer.initialise(draw)
    assert isinstance(layer, PointwiseSoftmax)

    def normal(*sizes: int) -> Tensor:
        return torch.randn(models, *sizes, generator=draw).to(device)

    leaves = [normal(contexts, EXPERTS, WIDTH).to(dtype), normal(contexts, EXPERTS).log_softmax(2)]
    leaves += [normal(vocabulary, WIDTH).mul(0.3).to(dtype).float(), normal(vocabulary)]
    leaves += [p.detach().to(device) + 0.1 * normal(*p.shape) for p in layer.function.parameters()]
    targets_GN = torch.randint(vocabulary, (models, contexts), generator=draw).to(device)
    rows = targets_GN, torch.full_like(targets_GN, 1 / contexts, dtype=torch.float32)
    truths = [
        true_results(layer, config, [leaf[g] for leaf in leaves], targets_GN[g])
        for g in range(models)
    ]
    for leaf in leaves:
        leaf.requires_grad_()
    with products_in("float32", device):
        losses = cross_entropies(Inputs(*leaves[:4]), rows, [layer.function] * models, leaves[4:])
        results = [losses.detach(), *torch.autograd.grad(losses.sum(), leaves)]
    assert [launch.call_count for launch in launches] == [-(-contexts // chunk)] * 2, (
        "the loss had no kernels"
    )
    for result, truth in zip(results, map(torch.stack, zip(*truths, strict=True)), strict=True):
        assert float((result - truth).norm() / truth.norm()) < (
            1e-5 if dtype == torch.float32 else 6e-3
        )


def true_results(
    layer: PointwiseSoftmax, config: OutputLayerConfig, leaves: list[Tensor], targets_N: Tensor
) -> list[Tensor]:
    """A model's mean loss and its gradients by the formulas, but for the product, which is rounded
    once."""
    hidden, prior, weight, bias, *parameters = doubles = [
        leaf.double().requires_grad_() for leaf in leaves
    ]
    exact = hidden @ weight.T
    logits = exact + (exact.to(leaves[0].dtype).double() - exact).detach() + bias
    names = [f"function.{name}" for name, _ in layer.function.named_parameters()]
    bent = formulas.f(config, dict(zip(names, parameters, strict=True)), logits)
    log_p = (prior[..., None] + bent - bent.logsumexp(2, keepdim=True)).logsumexp(1)
    loss = -log_p.gather(1, targets_N[:, None]).mean()
    return [loss.detach(), *torch.autograd.grad(loss, doubles)]
