"""Steps at paper shapes a GPU's way, on the device "meta", which has no numbers: what the Triton kernels are given is
what they are compiled for (`tests.support.compile_kernels`), and no larger than their grids and offsets allow."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from gpu_proof.trials import STACKED, layer_config, random_corpus, transformer_trial, trial
from tests.support.like_a_gpu import like_a_gpu
from trainables.device import Precision
from trainables.runtime import Runtime
from trainables.stack import Stack
from trainables.training import Trainer
from trainables.training.transformer import TransformerRecipe

pytest.importorskip("triton", reason="Triton is there for Linux alone")
MIXTURES = tuple(name for name in STACKED if hasattr(layer_config(name, "ptb"), "mixtures"))
"""Their models have other widths."""
PLAIN = tuple(name for name in STACKED if name not in MIXTURES)
WINDOW = 6
"""Time steps; a longer window has more launches of the same shapes."""
MOST_PROGRAMS = (2**31 - 1, 65_535, 65_535)
"""Along the three axes of a grid, on any GPU of NVIDIA."""
WITH_LONG_OFFSETS = {
    "product", "sums", "c_before", "c", "h", "by_output", "by_h", "by_c", "by_sums",
    "weight", "gradient", "average", "mean", "square",
}  # fmt: skip
"""Tensors whose offsets kernels compute in 64 bits."""


class Launches:
    """In the place of a kernel: checks every launch, and does nothing."""

    def __init__(self, kernel: Any, types: dict[str, str]) -> None:
        self._signature, self._types = inspect.signature(kernel.fn), types
        self.count = 0

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        assert all(0 < programs <= most for programs, most in zip(grid, MOST_PROGRAMS, strict=False)), grid

        def launch(*args: Any, num_warps: int = 4, **constants: Any) -> None:
            del num_warps
            self.count += 1
            for name, value in self._signature.bind(*args, **constants).arguments.items():
                self._check(name, value, constants)

        return launch

    def _check(self, name: str, value: Any, constants: dict[str, Any]) -> None:
        if isinstance(value, Tensor):
            assert value.device.type == "meta", f"{name} would lie on the host"
            wanted = {
                "*i64": {torch.int64},
                "*fp": {torch.float32, torch.bfloat16},
                "*numbers": {torch.float32, torch.float64},
            }.get(self._types.get(name, "*fp32"), {torch.float32})
            # Where no sums are wanted, any pointer takes their place.
            assert value.dtype in wanted or (name == "sums" and not constants.get("SUMS", True)), (name, value.dtype)
            assert name in WITH_LONG_OFFSETS or value.numel() < 2**31, f"{name} has more numbers than an offset counts"
        elif isinstance(value, int) and name not in constants:
            assert value < 2**31, name


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Launches]]:
    """The kernels' stand-ins, by module and name, on a device that takes its windows to be of one length."""
    from tests.support.compile_kernels import CELL_TYPES, TYPES
    from trainables.output_layers import kernels
    from trainables.stack import cell_kernels, update_kernels

    stand_ins = dict[str, Launches]()
    products = dict.fromkeys(("sums", "h", "by_h", "by_sums"), "*fp")
    both = "_forward", "_backward"
    of_modules: list[tuple[ModuleType, tuple[str, ...], dict[str, str]]] = [
        (kernels, both, {**TYPES, "product": "*fp"}),
        (cell_kernels, both, {**CELL_TYPES, **products}),
        (update_kernels, ("_update",), dict.fromkeys(("rate", "share", "by_mean", "by_square"), "*numbers")),
    ]
    for module, names, types in of_modules:
        for name in names:
            stand_in = Launches(getattr(module, name), types)
            monkeypatch.setattr(module, name, stand_in)
            stand_ins[f"{module.__name__.rpartition('.')[2]}.{name}"] = stand_in
    with like_a_gpu(WINDOW):
        yield stand_ins


def trainers(layers: Sequence[str], corpus: str, precision: Precision) -> list[Trainer]:
    """Paper shapes cost nothing there but the text."""
    text = random_corpus(corpus, "paper")
    configs = [trial(corpus, layer_config(name, corpus), precision, "paper") for name in layers]
    with torch.device("meta"):
        return [
            Trainer(config.model_copy(update={"seed": seed}), text, Runtime(device="meta"))
            for seed, config in enumerate(configs)
        ]


@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("corpus", ["ptb", "wikitext-2"])
@pytest.mark.parametrize("layers", [PLAIN, MIXTURES, ("lms_plif",) * 32, ("mos_plif",) * 32], ids=len)
def test_what_a_stack_gives_to_kernels_is_what_they_are_compiled_for(
    launched: dict[str, Launches], corpus: str, layers: Sequence[str], precision: Precision
) -> None:
    stack = Stack(trainers(layers, corpus, precision))
    stack.step()
    assert launched["cell_kernels._forward"].count == launched["cell_kernels._backward"].count == 3 * WINDOW
    assert launched["kernels._forward"].count == launched["kernels._backward"].count > 0
    assert all(tensor.dtype == torch.float32 for trainer in stack.trainers for pair in trainer.state for tensor in pair)


@pytest.mark.parametrize(("layers", "precision"), [(PLAIN, "bf16"), (MIXTURES, "float32")])
def test_what_a_stack_of_transformers_gives_to_kernels_is_so_too(
    launched: dict[str, Launches], layers: Sequence[str], precision: Precision, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TransformerRecipe, "first_position", lambda *_: 0)
    configs = [transformer_trial("ptb", layer_config(name, "ptb"), precision, "paper") for name in layers]
    with torch.device("meta"):
        made = [Trainer(config, random_corpus("ptb", "paper"), Runtime(device="meta")) for config in configs]
    stack = Stack(made)
    stack.step()
    assert launched["kernels._forward"].count == launched["kernels._backward"].count > 0
    assert all(tensor.dtype == torch.float32 for tensor in stack.weights)


@pytest.mark.parametrize("layer", ["gss", "mos_plif"])
def test_what_a_trial_alone_gives_to_kernels_is_so_too(launched: dict[str, Launches], layer: str) -> None:
    [alone] = trainers([layer], "wikitext-2", "bf16")
    alone.step()
    assert launched["kernels._forward"].count == launched["kernels._backward"].count > 0
