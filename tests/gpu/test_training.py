from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.support.device_trials import COMPARED, LAYERS, assert_same_bits, losses, trainer_on
from trainables.config import OutputLayerConfig
from trainables.device import generator, global_random_states, set_global_random_states
from trainables.draws import dropout, locked_dropout, word_dropout


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("layer", COMPARED, ids=lambda layer: layer.name)
def test_losses_without_dropout_equal_cpu(
    device: str, layer: OutputLayerConfig, optimizer: str
) -> None:
    if hasattr(layer, "latent_dropout"):
        layer = layer.model_copy(update={"latent_dropout": 0.0})
    rate = 5.0 if optimizer == "sgd" else 0.003
    here, on_cpu = (
        losses(trainer_on(name, layer, dropout=False, optimizer=optimizer, learning_rate=rate), 25)
        for name in (device, "cpu")
    )
    assert here == pytest.approx(on_cpu, rel=1e-4)


@pytest.mark.parametrize(
    ("drop", "shape", "axis"),
    [
        (locked_dropout, (7, 300, 200), 0),
        (word_dropout, (60_000, 3), 1),
        (dropout, (1, 300, 200), 0),
    ],
)
def test_masks_have_rate_and_shape(
    device: str,
    drop: Callable[[Tensor, float, torch.Generator], Tensor],
    shape: tuple[int, ...],
    axis: int,
) -> None:
    rate, ones = 0.4, torch.ones(shape, device=device)
    dropped = drop(ones, rate, generator(3, device))
    assert dropped.unique().cpu().tolist() == pytest.approx([0.0, 1 / (1 - rate)])
    deviation = (rate * (1 - rate) / 60_000) ** 0.5
    assert float((dropped == 0).float().mean()) == pytest.approx(rate, abs=4 * deviation)
    assert bool((dropped == dropped.select(axis, 0).unsqueeze(axis)).all())
    again, other = (drop(ones, rate, generator(seed, device)) for seed in (3, 4))
    assert torch.equal(dropped, again) and not torch.equal(dropped, other)


@pytest.mark.parametrize(("optimizer", "precision"), [("sgd", "float32"), ("adam", "bf16")])
@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
@pytest.mark.usefixtures("same_bits")
def test_resumed_trial_has_same_bits(
    device: str, layer: OutputLayerConfig, optimizer: str, precision: str
) -> None:
    rate = 5.0 if optimizer == "sgd" else 0.003
    through, resumed = (
        trainer_on(device, layer, optimizer=optimizer, precision=precision, learning_rate=rate)
        for _ in range(2)
    )
    losses(through, 6)
    tensors, state = through.snapshot()
    copies = {name: tensor.detach().clone() for name, tensor in tensors.items()}
    resumed.restore(copies, state)
    first, second = (losses(trainer, 6) for trainer in (through, resumed))
    assert first == second
    assert_same_bits(through, resumed)


def test_torch_generators_are_restored(device: str) -> None:
    states = global_random_states(device)
    first = torch.rand(5), torch.rand(5, device=device)
    set_global_random_states(states, device)
    assert torch.equal(torch.rand(5), first[0])
    assert torch.equal(torch.rand(5, device=device), first[1])
