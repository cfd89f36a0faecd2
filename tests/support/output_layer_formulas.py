"""Output layers as the papers define them, in float64, with all intermediate arrays.

Tests use them as independent truth: they share only parameter names with the package, and torch
differentiates them for true gradients. Shapes: N rows, K mixtures, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from trainables.config import (
    GssConfig,
    LmsPlifConfig,
    LmsPlifFrozenConfig,
    MocConfig,
    MonotoneNnConfig,
    MosConfig,
    MosPlifConfig,
    OutputLayerConfig,
    SigSoftmaxConfig,
    SoftcapConfig,
    SoftmaxConfig,
)
from trainables.output_layers import LayerShape, OutputLayer, build_output_layer

EVERY_LAYER: tuple[OutputLayerConfig, ...] = (
    SoftmaxConfig(),
    SigSoftmaxConfig(),
    GssConfig(c=-1.5, k=2.5),
    SoftcapConfig(cap=15.0),
    SoftcapConfig(form="sigmoid", cap=23.0),
    LmsPlifConfig(knots=20, limit=3.0, learning_rate=2.0),
    LmsPlifFrozenConfig(knots=20, limit=3.0),
    MonotoneNnConfig(units=5),
    MosConfig(mixtures=3, latent_dropout=0.0),
    MocConfig(mixtures=3, latent_dropout=0.0),
    MosPlifConfig(mixtures=2, latent_dropout=0.0, knots=20, limit=3.0, learning_rate=2.0),
)


def softplus(t: Tensor) -> Tensor:
    return t.clamp(min=0) + torch.log1p(torch.exp(-t.abs()))


def f(config: OutputLayerConfig, at: Mapping[str, Tensor], x: Tensor) -> Tensor:
    match config:
        case SigSoftmaxConfig():
            # Kanai et al. define it as exp(x) sigmoid(x), normalised.
            return x - softplus(-x)
        case GssConfig(c=c, k=k):
            return k * (x - c) + c - (k - 1) * softplus(x - c)
        case SoftcapConfig(form="tanh", cap=cap):
            return cap * torch.tanh(x / cap)
        case SoftcapConfig(form="sigmoid", cap=cap):
            return cap * torch.sigmoid((x * 23 / cap + 5) / 7.5)
        case LmsPlifConfig() | LmsPlifFrozenConfig() | MosPlifConfig():
            # Integral of the slopes from -T to x: in each interval, the slope times the part below
            # x.
            width = 2 * config.limit / config.knots
            total = torch.zeros_like(x)
            for i, w in enumerate(at["function.weight_K"]):
                way = x - (i * width - config.limit)
                way = way if i == 0 else way.clamp(min=0)
                total = total + softplus(w) * (
                    way if i == config.knots - 1 else way.clamp(max=width)
                )
            return total
        case MonotoneNnConfig():
            u, v = softplus(at["function.steepness_U"]), softplus(at["function.height_U"])
            return (v * torch.sigmoid(u * x[..., None] + at["function.bias_U"])).sum(-1)
    return x


def log_p(
    config: OutputLayerConfig, at: Mapping[str, Tensor], hidden_NC: Tensor, weight_VD: Tensor
) -> Tensor:
    if not isinstance(config, MosConfig | MocConfig | MosPlifConfig):
        x_NV = f(config, at, hidden_NC @ weight_VD.T + at["bias_V"])
        return x_NV - x_NV.logsumexp(1, keepdim=True)
    prior_NK = hidden_NC @ at["prior_KC"].T
    prior_NK = prior_NK - prior_NK.logsumexp(1, keepdim=True)
    contexts_NKD = torch.tanh(
        torch.einsum("nc,kdc->nkd", hidden_NC, at["latent_KDC"]) + at["latent_bias_KD"]
    )
    if isinstance(config, MocConfig):
        x_NV = (prior_NK.exp()[:, :, None] * contexts_NKD).sum(1) @ weight_VD.T + at["bias_V"]
        return x_NV - x_NV.logsumexp(1, keepdim=True)
    x_NKV = f(config, at, torch.einsum("nkd,vd->nkv", contexts_NKD, weight_VD) + at["bias_V"])
    return (prior_NK[:, :, None] + x_NKV - x_NKV.logsumexp(2, keepdim=True)).logsumexp(1)


def parameters_of(layer: nn.Module) -> dict[str, Tensor]:
    return dict(layer.named_parameters())


def layer_of(config: OutputLayerConfig, vocabulary: int, width: int = 3) -> OutputLayer:
    shape = LayerShape(vocabulary_size=vocabulary, embedding_width=width, context_width=width)
    layer = build_output_layer(config, shape).double()
    generator = torch.Generator().manual_seed(5)
    layer.initialise(generator)
    nn.init.normal_(parameters_of(layer)["bias_V"], generator=generator)
    return layer


def inputs(
    rows: int, width: int, vocabulary: int, scale: float = 1.0, seed: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn(rows, width, dtype=torch.float64, generator=generator)
    weight = torch.randn(vocabulary, width, dtype=torch.float64, generator=generator) * scale
    return hidden, weight, torch.randint(vocabulary, (rows,), generator=generator)


def leaves_of(layer: nn.Module, hidden: Tensor, weight: Tensor) -> dict[str, Tensor]:
    inputs = {"hidden": hidden.clone().requires_grad_(), "weight": weight.clone().requires_grad_()}
    return inputs | {name: p for name, p in layer.named_parameters() if p.requires_grad}


def loss_and_gradients(
    layer: OutputLayer, hidden: Tensor, weight: Tensor, targets: Tensor
) -> tuple[float, dict[str, Tensor]]:
    leaves = leaves_of(layer, hidden, weight)
    loss = layer.loss(leaves["hidden"].unsqueeze(1), leaves["weight"], targets)
    with torch.no_grad():
        assert loss == layer.loss(hidden.unsqueeze(1), weight, targets)
    gradients = torch.autograd.grad(3.0 * loss, list(leaves.values()))
    return loss.item(), dict(zip(leaves, gradients, strict=True))


def truth_and_gradients(
    config: OutputLayerConfig, layer: OutputLayer, hidden: Tensor, weight: Tensor, targets: Tensor
) -> tuple[float, dict[str, Tensor]]:
    leaves = leaves_of(layer, hidden, weight)
    rows = log_p(config, parameters_of(layer), leaves["hidden"], leaves["weight"])
    if not targets.is_floating_point():
        targets = nn.functional.one_hot(targets, rows.shape[1])
    loss = -torch.where(targets > 0, targets * rows, 0.0).sum(1).mean()
    gradients = torch.autograd.grad(
        3.0 * loss, list(leaves.values()), allow_unused=True, materialize_grads=True
    )
    return loss.item(), dict(zip(leaves, gradients, strict=True))
