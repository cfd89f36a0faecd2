"""What a step of a stack asks of a GPU: every operation that it dispatches at paper shapes on the
device "meta", with the bytes that it moves and the operations of its products.

`python -m tests.gpu_proof.step_cost` prints the costs for `gpu_proof.roofline`, and `--names` what
they consist of."""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from gpu_proof.roofline import CARDS, COSTS, MODELS, WINDOW, Card, StepCost, Work, step_seconds
from gpu_proof.trials import CORPORA, layer_config, random_corpus, trial
from tests.support.like_a_gpu import like_a_gpu
from trainables.device import Precision
from trainables.output_layers import kernels
from trainables.runtime import Runtime
from trainables.stack import Stack, cell_kernels, update_kernels
from trainables.training import Trainer, WeightAverage

VIEWS = {
    "_reshape_alias", "_unsafe_view", "alias", "as_strided", "chunk", "detach", "empty", "empty_like", "empty_strided",
    "expand", "new_empty", "new_empty_strided", "permute", "resize_", "select", "slice", "split", "squeeze", "t",
    "transpose", "unbind", "unflatten", "unsqueeze", "view",
}  # fmt: skip
"""Operations that move nothing."""
WRITTEN = {
    "bernoulli_",
    "fill_",
    "new_full",
    "new_ones",
    "new_zeros",
    "normal_",
    "zero_",
    "zeros",
    "zeros_like",
}
"""Operations that read nothing."""
PRODUCTS = {"mm", "bmm", "addmm", "baddbmm", "baddbmm_"}
LAUNCHED = {
    kernels: ("_forward", "_backward"),
    cell_kernels: ("_forward", "_backward"),
    update_kernels: ("_update",),
}
USED_WITH = {"ADAM": ("mean", "square"), "AVERAGED": ("average",), "SUMS": ("sums",)}
"""Arguments that a kernel leaves alone without a constant."""
CHANGED = {"by_c", "weight", "average", "mean", "square"}
"""Tensors that a kernel both reads and writes; `product` is so in the way back."""


class Event(NamedTuple):
    """One kernel of a GPU."""

    name: str
    bytes_moved: int
    operations: int = 0
    recurrent: bool = False
    """A product with as many rows as the batch: one of every time step."""
    aligned: bool = True
    """Rows of a product's factors begin at multiples of 16 bytes."""


class _Recorder(TorchDispatchMode):
    """Notes every operation on tensors of the device "meta"."""

    def __init__(self, batch: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._batch, self.events = batch, list[Event]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        given, made = _on_meta((args, kwargs)), _on_meta(result)
        if (given or made) and name not in VIEWS:
            factors = _factors(name, args)
            expanded = 2 * sum(map(_size, made)) if name == "baddbmm" and not kwargs else 0
            moved = _moved(name, given, made) + expanded
            self.events.append(Event(name, moved, *_product(factors, self._batch)))
        return result

    def launched(self, kernel: Any, name: str) -> Any:
        """A stand-in that notes a launch of a Triton kernel."""
        recorder, signature = self, inspect.signature(kernel.fn)

        class StandIn:
            def __getitem__(self, _grid: tuple[int, ...]) -> Callable[..., None]:
                def launch(*args: Any, **options: Any) -> None:
                    constants = {
                        key: value for key, value in options.items() if key in signature.parameters
                    }
                    given = signature.bind(*args, **constants).arguments
                    both = CHANGED | ({"product"} if "backward" in name else set())
                    unused = {
                        key
                        for flag, keys in USED_WITH.items()
                        if not constants.get(flag, True)
                        for key in keys
                    }
                    moved = sum(
                        value.numel() * value.element_size() * (1 + (key in both))
                        for key, value in given.items()
                        if isinstance(value, Tensor) and key not in unused
                    )
                    recorder.events.append(Event(name, moved))

                return launch

        return StandIn()


def _on_meta(tree: Any) -> list[Tensor]:
    return [
        leaf
        for leaf in tree_leaves(tree)
        if isinstance(leaf, Tensor) and leaf.device.type == "meta"
    ]


def _size(tensor: Tensor) -> int:
    """Of what there is of an expanded tensor."""
    return min(tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes())


def _moved(name: str, given: Sequence[Tensor], made: Sequence[Tensor]) -> int:
    """Every argument is read once and every result written once; one that is changed in place is
    both."""
    if name in WRITTEN:
        return _size((given or made)[0])
    if name == "embedding_dense_backward":
        return 3 * _size(given[0]) + 2 * _size(made[0])
    if name in {"index", "embedding"}:
        return 2 * sum(map(_size, made))
    known = {id(tensor) for tensor in given}
    moved = sum(map(_size, given)) + sum(
        _size(tensor) for tensor in made if id(tensor) not in known
    )
    return moved + (_size(given[0]) if name.endswith("_") and name != "copy_" else 0)


def _factors(name: str, args: Sequence[Any]) -> Sequence[Tensor]:
    """Those of a product; of anything else none."""
    return [] if name not in PRODUCTS else args[:2] if name in {"mm", "bmm"} else args[1:3]


def _product(factors: Sequence[Tensor], batch: int) -> tuple[int, bool, bool]:
    """Its operations, whether it is recurrent, and whether all is aligned."""
    if not factors:
        return 0, False, True
    left, right = factors
    strides = [max(factor.stride()[-2:]) * factor.element_size() for factor in factors]
    return (
        2 * left.numel() * right.shape[-1],
        left.shape[-2] == batch,
        all(stride % 16 == 0 for stride in strides),
    )


def events_of_a_step(
    corpus: str, layer: str, precision: Precision = "bf16", models: int = MODELS
) -> list[Event]:
    """Of models whose weights are averaged already."""
    text = random_corpus(corpus, "paper")
    config = trial(corpus, layer_config(layer, corpus), precision, "paper")
    recorder = _Recorder(config.training.batch_size)
    with like_a_gpu(WINDOW), ExitStack() as stand_ins:
        for module, names in LAUNCHED.items():
            for name in names:
                label = f"{module.__name__.rpartition('.')[2]}.{name}"
                stand_ins.enter_context(
                    patch.object(module, name, recorder.launched(getattr(module, name), label))
                )
        with torch.device("meta"):
            trainers = [Trainer(config, text, Runtime(device="meta")) for _ in range(models)]
        for trainer in trainers:
            trainer.average = WeightAverage(trainer.model)
        stack = Stack(trainers)
        stack.step()
        recorder.events.clear()
        with recorder:
            stack.step()
    return recorder.events


def cost_of(events: Sequence[Event]) -> StepCost:
    """Added up by kind of work."""

    def work(chosen: Callable[[Event], bool]) -> Work:
        of_kind = [event for event in events if chosen(event)]
        moved, operations = (
            sum(event.bytes_moved for event in of_kind),
            sum(event.operations for event in of_kind),
        )
        return Work(len(of_kind), round(1e-9 * moved, 2), round(1e-12 * operations, 3))

    return StepCost(
        elementwise=work(lambda event: not event.operations),
        products=work(lambda event: bool(event.operations) and not event.recurrent),
        recurrent=work(lambda event: event.recurrent),
    )


def seconds_an_epoch(corpus: str, layer: str, cost: StepCost, card: Card) -> float:
    """Of one trial of the stack, which all of them share."""
    batch = trial(corpus, layer_config(layer, corpus), "bf16", "paper").training.batch_size
    return CORPORA[corpus][0] / (batch * WINDOW) * step_seconds(cost, card) / MODELS


if __name__ == "__main__":
    for corpus, layer in COSTS:
        events = events_of_a_step(corpus, layer)
        cost = cost_of(events)
        seconds = ", ".join(
            f"{name} {seconds_an_epoch(corpus, layer, cost, card):.2f}"
            for name, card in CARDS.items()
        )
        works = ", ".join(f"Work{tuple(work)}" for work in cost)
        print(f'    ("{corpus}", "{layer}"): StepCost({works}),  # {seconds}')
        if "--names" in sys.argv:
            moved = Counter[tuple[str, bool]]()
            for event in events:
                moved[event.name, event.recurrent] += event.bytes_moved
            for (name, recurrent), size in moved.most_common(25):
                print(f"        {name}{' (recurrent)' * recurrent}: {1e-9 * size:.2f} GB")
