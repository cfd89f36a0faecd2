"""Mixtures of experts against the formula, written out with loops."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from trainables.experiments.mixture_of_experts import (
    Activation,
    ConvolutionalMixtureOfExperts,
    ExpertSum,
    MixtureOfExperts,
    relu,
    softmax_over_experts,
)

SEED = torch.Generator().manual_seed(5)


def draw(layer: nn.Module) -> None:
    """Give every parameter a value, biases too, so that none hides by being 0."""
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_(generator=SEED)


def gates_by_hand(layer: MixtureOfExperts | ConvolutionalMixtureOfExperts, example: Tensor, output: int) -> list[float]:
    """Softmax over the experts of v_k x + b_k, or 1/K."""
    if layer.gate_weights_KUI is None:
        return [1 / layer.experts] * layer.experts
    unit = output if layer.gate_weights_KUI.shape[1] > 1 else 0
    flat = example.flatten().tolist()
    scores = []
    for k in range(layer.experts):
        weights = layer.gate_weights_KUI[k, unit].tolist()
        bias = 0.0 if layer.gate_bias_KU is None else layer.gate_bias_KU[k, unit].item()
        scores.append(bias + sum(v * x for v, x in zip(weights, flat, strict=True)))
    total = sum(math.exp(score) for score in scores)
    return [math.exp(score) / total for score in scores]


@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("gates", [None, softmax_over_experts])
@pytest.mark.parametrize("bias", [False, True])
def test_the_dense_layer_is_the_gated_sum_of_its_experts(each: bool, gates: Activation | None, bias: bool) -> None:
    layer = MixtureOfExperts(
        3, 4, 2, gate_activation=gates, expert_bias=bias, gate_bias=bias, gate_each_output=each
    ).double()
    draw(layer)
    inputs = torch.randn(5, 3, dtype=torch.float64, generator=SEED)
    outputs = layer(inputs)
    for n, o in ((n, o) for n in range(5) for o in range(4)):
        expected = 0.0
        for k, gate in enumerate(gates_by_hand(layer, inputs[n], o)):
            score = 0.0 if layer.expert_bias_KO is None else layer.expert_bias_KO[k, o].item()
            score += float(layer.expert_weights[k, o].detach() @ inputs[n])
            expected += gate * max(score, 0.0)
        assert outputs[n, o].item() == pytest.approx(expected, abs=1e-12)


def test_any_dimensions_may_come_before_the_last_and_any_activation_may_be_given() -> None:
    layer = MixtureOfExperts(3, 4, 2, gate_activation=torch.sigmoid, expert_activation=torch.tanh).double()
    draw(layer)
    inputs = torch.randn(2, 5, 3, dtype=torch.float64, generator=SEED)
    assert layer(inputs).shape == (2, 5, 4)
    torch.testing.assert_close(layer(inputs)[1], layer(inputs[1]))
    torch.testing.assert_close(layer(inputs)[1, 2], layer(inputs[1, 2]))
    assert layer(inputs[0, 0]).shape == (4,) and layer(inputs[:0]).shape == (0, 5, 4)
    gates = torch.sigmoid(layer.gate_weights_KUI[:, 0] @ inputs[0, 0] + layer.gate_bias_KU[:, 0])  # type: ignore[index]
    experts = torch.tanh(layer.expert_weights @ inputs[0, 0] + layer.expert_bias_KO)  # type: ignore[operator]
    torch.testing.assert_close(layer(inputs)[0, 0], gates @ experts)


def test_one_expert_with_a_constant_gate_is_a_linear_layer_with_relu() -> None:
    layer, plain = MixtureOfExperts(3, 4, 1, gate_activation=None), nn.Linear(3, 4)
    draw(layer)
    with torch.no_grad():
        plain.weight.copy_(layer.expert_weights[0])
        plain.bias.copy_(layer.expert_bias_KO[0])  # type: ignore[index]
    inputs = torch.randn(6, 3, generator=SEED)
    torch.testing.assert_close(layer(inputs), plain(inputs).relu())


@pytest.mark.parametrize("each", [False, True])
def test_the_convolutional_layer_is_the_gated_sum_at_every_position(each: bool) -> None:
    layer = ConvolutionalMixtureOfExperts(
        2, 3, 2, kernel_size=(3, 2), input_size=(6, 5), stride=2, padding=1, gate_each_output=each
    ).double()
    draw(layer)
    images = torch.randn(2, 2, 6, 5, dtype=torch.float64, generator=SEED)
    outputs = layer(images)
    assert outputs.shape == (2, 3, 3, 3)
    padded = nn.functional.pad(images, (1, 1, 1, 1))
    for n, o, row, column in ((n, o, r, c) for n in range(2) for o in range(3) for r in range(3) for c in range(3)):
        patch = padded[n, :, 2 * row : 2 * row + 3, 2 * column : 2 * column + 2]
        gates = gates_by_hand(layer, images[n], o)
        biases = layer.expert_bias_KO
        assert biases is not None
        scores = [(layer.expert_weights[k, o] * patch).sum() + biases[k, o] for k in range(2)]
        experts = [max(score.item(), 0.0) for score in scores]
        expected = sum(gate * expert for gate, expert in zip(gates, experts, strict=True))
        assert outputs[n, o, row, column].item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("size", [(7,), (4, 5, 3)])
def test_convolutions_of_one_and_three_dimensions_with_constant_gates_are_means(size: tuple[int, ...]) -> None:
    kernel = (2,) * len(size)
    layer = ConvolutionalMixtureOfExperts(2, 3, 4, kernel_size=kernel, input_size=size, gate_activation=None)
    assert len(list(layer.parameters())) == 2
    inputs = torch.randn(2, 2, *size, generator=SEED)
    convolve = nn.functional.conv1d if len(size) == 1 else nn.functional.conv3d
    experts = [relu(convolve(inputs, weights)) for weights in layer.expert_weights]
    torch.testing.assert_close(layer(inputs), torch.stack(experts).mean(0))


def test_weights_start_glorot_uniform_each_expert_for_itself_and_biases_at_zero() -> None:
    layer = MixtureOfExperts(100, 200, 3)
    layer.initialise(torch.Generator().manual_seed(1))
    assert layer.gate_weights_KUI is not None
    for weights, limit in ((layer.expert_weights, math.sqrt(6 / 300)), (layer.gate_weights_KUI, math.sqrt(6 / 101))):
        largest = float(weights.detach().abs().max())
        assert 0.95 * limit < largest <= limit
        assert float(weights.detach().var()) == pytest.approx(limit**2 / 3, rel=0.1), "of a uniform distribution"
    assert [float(bias.abs().max()) for bias in (layer.expert_bias_KO, layer.gate_bias_KU) if bias is not None] == [
        0,
        0,
    ]
    again = MixtureOfExperts(100, 200, 3)
    again.initialise(torch.Generator().manual_seed(1))
    assert torch.equal(layer.expert_weights, again.expert_weights)


def test_what_cannot_be_a_layer_is_said() -> None:
    with pytest.raises(ValueError, match="at least one expert, got 0"):
        MixtureOfExperts(2, 2, 0)
    with pytest.raises(ValueError, match=r"a kernel of \(3, 3\) for inputs of \(8,\)"):
        ConvolutionalMixtureOfExperts(2, 2, 2, kernel_size=(3, 3), input_size=(8,))


def test_a_layer_without_its_own_experts_is_none() -> None:
    class Unfinished(ExpertSum):
        pass

    with pytest.raises(TypeError, match="expert_scores"):
        Unfinished(  # type: ignore[abstract]
            experts=1,
            outputs=1,
            expert_shape=(1,),
            input_numbers=1,
            gate_activation=None,
            expert_activation=relu,
            expert_bias=False,
            gate_bias=False,
            gate_each_output=False,
        )
