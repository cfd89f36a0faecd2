from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from tests.support import tiny_trial as tiny
from tests.support.output_layer_formulas import EVERY_LAYER, inputs, layer_of, log_p, parameters_of
from trainables.config import (
    GRADIENT_BOTTLENECK,
    GssConfig,
    MosConfig,
    OutputLayerConfig,
    SoftmaxConfig,
    even_indices,
)
from trainables.measurements import context_vectors, measure, registry
from trainables.measurements.gradient_bottleneck import gradient_bottleneck_metrics
from trainables.output_layers import OutputLayer
from trainables.runtime import Runtime
from trainables.training import Trainer

Array = NDArray[np.float64]


def gradients_and_jacobians(
    config: OutputLayerConfig, layer: OutputLayer, weight: Tensor, hidden: Tensor, targets: Tensor
) -> list[tuple[Array, Array]]:
    """Return each context's gradient g and Jacobian J, by the papers' formulas.

    The columns of J are centred.
    """
    at = {name: parameter.detach().double() for name, parameter in parameters_of(layer).items()}
    pairs = []
    for context, target in zip(hidden, targets, strict=True):
        gradient = log_p(config, at, context[None], weight)[0].exp().numpy()
        gradient[target] -= 1
        jacobian: Tensor = torch.autograd.functional.jacobian(
            lambda h: log_p(config, at, h[None], weight)[0], context
        )
        pairs.append((gradient, (jacobian - jacobian.mean(0)).numpy()))
    return pairs


def dense(pairs: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    shares, angles = [], []
    for g, j in pairs:
        lost = g - j @ np.linalg.lstsq(j, g, rcond=None)[0]
        moved = j @ (j.T @ g)
        cosine = g @ moved / np.linalg.norm(g) / np.linalg.norm(moved)
        shares.append(lost @ lost / (g @ g))
        angles.append(math.degrees(math.acos(cosine)))
    return np.array(shares), np.array(angles)


@pytest.mark.parametrize("config", EVERY_LAYER, ids=lambda config: config.name)
@pytest.mark.parametrize(("vocabulary", "rank"), [(40, 5), (40, 2), (6, 5), (5, 5), (4, 5)])
def test_share_equals_dense_projection(
    config: OutputLayerConfig, vocabulary: int, rank: int
) -> None:
    """If V is at most d + 1, the gradient is in the Jacobian's column space, so no part is lost."""
    width = 5
    layer = layer_of(config, vocabulary, width)
    hidden, weight, targets = inputs(7, width, vocabulary)
    if rank < width:
        weight = weight[:, :rank] @ inputs(rank, width, vocabulary, seed=3)[0]
    metrics = gradient_bottleneck_metrics(layer, weight, hidden, targets)
    pairs = gradients_and_jacobians(config, layer, weight, hidden, targets)
    shares, angles = dense(pairs)
    assert metrics["gradient_contexts"] == 7
    assert ("gradient_norm_lost" in metrics) == isinstance(config, SoftmaxConfig)
    if isinstance(config, SoftmaxConfig):
        gradients, w = np.stack([g for g, _ in pairs]), weight.numpy()
        lost = gradients - gradients @ w @ np.linalg.pinv(w, rcond=1e-12)
        share = np.linalg.norm(lost) / np.linalg.norm(gradients)
        assert metrics["gradient_norm_lost"] == pytest.approx(share, rel=1e-10, abs=1e-14)
    assert metrics["gradient_lost_share"] == pytest.approx(shares.mean(), rel=1e-8, abs=1e-15)
    assert metrics["gradient_angle_degrees"] == pytest.approx(angles.mean(), rel=1e-6)
    to_columns = np.degrees(np.arccos(np.sqrt(1 - shares)))
    assert (angles > to_columns - 1e-6).all(), (
        "no step is closer to the gradient than the column space"
    )
    if vocabulary <= width + 1:
        assert float(metrics["gradient_lost_share"]) < 1e-15
    else:
        assert 0.5 < float(metrics["gradient_lost_share"]) < 1


def test_certain_next_word_is_excluded() -> None:
    layer = layer_of(SoftmaxConfig(), 10)
    parameters_of(layer)["bias_V"].data[3] = 5000.0
    hidden, weight, _ = inputs(2, 3, 10)
    certain = gradient_bottleneck_metrics(layer, weight, hidden, torch.tensor([3, 3]))
    assert certain == {"gradient_contexts": 0}
    one = gradient_bottleneck_metrics(layer, weight, hidden, torch.tensor([3, 4]))
    assert one["gradient_contexts"] == 1 and 0 < float(one["gradient_lost_share"]) < 1


@pytest.mark.parametrize(
    ("config", "head_rank"), [(GssConfig(c=-1.5, k=2.5), None), (MosConfig(mixtures=3), 3)]
)
def test_model_has_its_layers_bottleneck(
    monkeypatch: pytest.MonkeyPatch, config: OutputLayerConfig, head_rank: int | None
) -> None:
    """A head of low rank has a Jacobian of the same rank, although rounding adds small errors."""
    monkeypatch.setattr(registry, "CONTEXTS", 20)
    trial, corpus = tiny.trial(output_layer=config, head_rank=head_rank), tiny.corpus()
    model = Trainer(trial, corpus, Runtime()).model.eval()
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    [(metrics, _)] = measure([GRADIENT_BOTTLENECK], model, corpus, trial, Runtime()).values()
    indices = even_indices(len(corpus.test), 20)
    hidden = context_vectors(model, corpus.test, window=70)[indices].double()
    targets = torch.tensor(corpus.test[[index + 1 for index in indices]])
    weight = before["embedding_VD"].double()
    if head_rank is not None:
        weight = before["head.left_VR"].double() @ before["head.right_RD"].double()
    pairs = gradients_and_jacobians(config, model.output, weight, hidden, targets)
    shares, angles = dense(pairs)
    assert metrics["gradient_contexts"] == 20
    assert metrics["gradient_lost_share"] == pytest.approx(shares.mean(), rel=1e-6)
    assert metrics["gradient_angle_degrees"] == pytest.approx(angles.mean(), rel=1e-4)
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, before[name]) and parameter.dtype == torch.float32
