"""Stacks whose products are in bf16: on a CPU against the same trials alone, and a GPU's way on the
device "meta"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tests.support import tiny_trial as tiny
from tests.support.device_trials import STACKED, losses, trainer_on
from tests.support.products import Asked
from trainables.config import OutputLayerConfig
from trainables.language_model import AwdLstm
from trainables.runtime import Runtime
from trainables.stack import Stack, stack_key
from trainables.stack.kinds import draws_of, stacked_model
from trainables.stack.masks import StackedDraws
from trainables.stack.model import stacked_states
from trainables.stack.validation import valid_losses
from trainables.stack.weights import Weights
from trainables.training import Trainer, loop


def trainers(
    layer: OutputLayerConfig, precision: str = "bf16", device: str = "cpu"
) -> list[Trainer]:
    return [trainer_on(device, layer, seed=seed, precision=precision) for seed in (1, 2, 3)]


def distance(trainer: Trainer, other: Trainer) -> float:
    """Of the weights that are furthest apart, relative to their norm."""
    pairs = zip(trainer.model.parameters(), other.model.parameters(), strict=True)
    return max(float(((p - q).norm() / q.norm().clamp(min=1e-9)).detach()) for p, q in pairs)


@pytest.mark.parametrize("layer", STACKED, ids=lambda layer: layer.name)
def test_on_a_cpu_trials_in_bf16_do_in_a_stack_what_they_do_alone(layer: OutputLayerConfig) -> None:
    """The same factors are rounded in the same way. Sums in float32 differ in their last bits;
    where one of those turns a rounding the other way, weights part by a fraction of what rounding
    itself does to them."""
    alone, together, exact = trainers(layer), trainers(layer), trainers(layer, "float32")
    stack = Stack(together)
    for step in range(50):
        for trainer in alone:
            losses(trainer, 1)
        stack.step()
        if step < 2:
            for trainer, expected, unrounded in zip(together, alone, exact, strict=True):
                losses(unrounded, 1)
                assert distance(trainer, expected) < 1e-4 < distance(trainer, unrounded)
    for trainer, expected in zip(together, alone, strict=True):
        assert float(trainer.epoch_loss) == pytest.approx(float(expected.epoch_loss), rel=1e-4)


def test_validation_of_a_stack_in_bf16_is_in_float32() -> None:
    together = trainers(STACKED[4])
    for trainer in together:
        trainer.step()
    alone = [trainer.end_epoch().valid_loss for trainer in together]
    with Asked() as asked:
        stacked = valid_losses(together)
    assert asked.product_dtypes == {torch.float32}
    assert stacked == pytest.approx(alone, rel=1e-5)


@pytest.mark.parametrize("layer", STACKED, ids=lambda layer: layer.name)
def test_on_a_gpu_every_product_of_a_stack_is_in_bf16_and_the_rest_in_float32(
    layer: OutputLayerConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        loop, "generator", lambda seed, _device: torch.Generator().manual_seed(seed)
    )
    together = trainers(layer, device="meta")
    stack = Stack(together)
    with Asked() as asked:
        stack.step()
    assert asked.product_dtypes == {torch.bfloat16}
    assert {tensor.dtype for trainer in together for pair in trainer.state for tensor in pair} == {
        torch.float32
    }
    tensors = [
        tensor for weight in stack.weights for tensor in (weight, weight.grad) if tensor is not None
    ]
    assert {tensor.dtype for tensor in tensors} == {torch.float32}


class OnMetaAlone(TorchDispatchMode):
    """Fails where a tensor inside lies on the CPU, as one that is copied to a GPU does."""

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        tensors = [t for t in tree_leaves((args, kwargs, result)) if isinstance(t, Tensor)]
        assert {tensor.device.type for tensor in tensors} <= {"meta"}, func
        return result


@pytest.mark.parametrize("layer", STACKED, ids=lambda layer: layer.name)
def test_on_a_gpu_contexts_losses_and_gradients_copy_nothing_there(
    layer: OutputLayerConfig,
) -> None:
    """As a captured graph would copy it no second time."""
    config, random = tiny.trial(output_layer=layer, precision="bf16"), torch.Generator()
    models = [AwdLstm(config.model, layer, tiny.VOCABULARY).to("meta") for _ in range(2)]
    for model in models:
        model.train_in("bf16")
    weights = Weights.shared_by(models)
    of_model = draws_of(config, tiny.VOCABULARY, 6)
    draws = StackedDraws([of_model] * 2, [random] * 2, weights["embedding_VD"], longest=6)
    draws.draw([6, 6])
    masks = draws.masks()
    tokens = torch.zeros(2, 6, 4, dtype=torch.int64, device="meta")
    states = stacked_states([model.zero_state(4) for model in models])
    rows = tokens.flatten(1), torch.ones(2, 24, device="meta")
    stacked = stacked_model(models, weights)
    with OnMetaAlone():  # type: ignore[no-untyped-call]
        contexts = stacked.contexts(tokens, states, tokens[:, 0, 0], masks)
        stacked.losses(contexts.dropped_GTBC, stacked.output_weight(), rows, masks).sum().backward()
    assert all(weight.grad is not None for weight in weights if weight.requires_grad)


def test_a_trial_in_bf16_trains_with_others_in_bf16_alone() -> None:
    key, other, float32 = (
        stack_key(tiny.trial(precision=precision, learning_rate=rate))
        for precision, rate in (("bf16", 1.0), ("bf16", 2.0), ("float32", 1.0))
    )
    assert key is not None and key == other and key != float32


def test_a_trial_in_bf16_leaves_its_stack_and_goes_on_alone() -> None:
    leaving, staying = trainers(STACKED[2])[:2]
    stack = Stack([leaving, staying])
    stack.step()
    stack.leave(leaving)
    resumed = Trainer(leaving.config, tiny.corpus(), Runtime())
    tensors, state = leaving.snapshot()
    resumed.restore({name: tensor.detach().clone() for name, tensor in tensors.items()}, state)
    assert losses(resumed, 3) == losses(leaving, 3)
