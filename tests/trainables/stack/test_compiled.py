"""The update of a stack through `torch.compile` with its eager backend, as one graph: nothing of it
is decided by a number that lies on the device. (Of the rest of a step the compiler makes many
graphs, as it takes no view as `out=` and no backward pass inside; `tests.support.cpu_graphs` has
the whole.)"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest
import torch
from torch import Tensor

from tests.support.device_trials import STACKED, trainer_on, transformer_on
from trainables.stack import Stack
from trainables.training import Trainer, WeightAverage


@pytest.fixture(autouse=True)
def _in_float64() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def after_two_steps(optimizer: str, *, compiled: bool) -> dict[str, Tensor]:
    """Weights, moments and averages of a stack with layers of four kinds."""
    new: Callable[..., Trainer] = partial(
        trainer_on, optimizer=optimizer, learning_rate=0.003, bptt=6
    )
    if optimizer == "adamw":
        new = partial(transformer_on, window=6)
    trainers = [
        new("cpu", layer, seed=seed, weight_decay=1e-3) for seed, layer in enumerate(STACKED[:4])
    ]
    for trainer in trainers if optimizer != "adamw" else ():
        trainer.average = WeightAverage(trainer.model)
    stack = Stack(trainers)
    if compiled:
        update = stack._program._update
        update.step = torch.compile(update.step, backend="eager", fullgraph=True)  # type: ignore[method-assign]
    for _ in range(2):
        stack.step()
    numbers = [(number, trainer.snapshot()[0]) for number, trainer in enumerate(trainers)]
    return {
        f"{number}.{name}": tensor
        for number, tensors in numbers
        for name, tensor in tensors.items()
    }


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adamw"])
def test_an_update_is_one_graph(optimizer: str) -> None:
    expected = after_two_steps(optimizer, compiled=False)
    torch._dynamo.utils.counters.clear()
    result = after_two_steps(optimizer, compiled=True)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1
    for name, tensor in expected.items():
        torch.testing.assert_close(result[name], tensor, rtol=1e-12, atol=1e-15, msg=name)
