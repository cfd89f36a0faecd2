"""Compile every kernel to GPU machine code without a GPU.

`python -m tests.trainables.stack.compile_kernels 90 4` compiles for compute capability 9.0. It
takes training steps for four shapes of the papers on the device "meta", whose tensors have no
values. Triton compiles a variant of a kernel for each combination of dtypes, alignment and
divisors. Prints JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction

from gpu_proof.trials import STACKED, layer_config, random_corpus, transformer_trial, trial
from tests.support.like_a_gpu import like_a_gpu
from trainables.config import LanguageTrialConfig
from trainables.corpora import Corpus
from trainables.one_element_kernel import launch as launch_one_element
from trainables.runtime import Runtime
from trainables.stack import Stack
from trainables.training import Trainer

ROOT = Path(__file__).parents[3]
WINDOW = 3
"""Time steps of a window. A longer window would only repeat the same kernel launches."""
MIXTURES = tuple(name for name in STACKED if hasattr(layer_config(name, "ptb"), "mixtures"))
"""Mixture layers need a stack of their own, because their models have other widths."""
PLAIN = tuple(name for name in STACKED if name not in MIXTURES)


class StandInDriver:
    def __init__(self, architecture: int) -> None:
        self._target = GPUTarget("cuda", architecture, 32)

    def get_current_target(self) -> GPUTarget:
        return self._target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, _device: int) -> int:
        return 0


class Compiler:
    def __init__(self) -> None:
        self.compiled: dict[str, set[tuple[Any, ...]]] = {}

    def launcher(self, kernel: Any, grid: tuple[int, ...]) -> Callable[..., None]:
        def launch(*args: Any, **options: Any) -> None:
            constants = {name: value for name, value in options.items() if name in kernel.arg_names}
            named = kernel.signature.bind(*args, **constants).arguments
            tensors = [value for value in args if isinstance(value, torch.Tensor)]
            assert all(tensor.device.type == "meta" for tensor in tensors)
            kernel.warmup(*args, grid=grid, **options)
            kind = named.get("KIND"), named.get("SUMS"), str(tensors[0].dtype)
            self.compiled.setdefault(_name(kernel), set()).add(kind)

        return launch


def _name(kernel: Any) -> str:
    return f"{kernel.fn.__module__}.{kernel.fn.__name__}"


def step(configs: Sequence[LanguageTrialConfig], text: Corpus) -> None:
    with torch.device("meta"):
        trainers = [Trainer(config, text, Runtime(device="meta")) for config in configs]
    (Stack(trainers) if len(trainers) > 1 else trainers[0]).step()


def take_steps(count: int) -> None:
    ptb, wikitext = random_corpus("ptb", "paper"), random_corpus("wikitext-2", "paper")
    small = replace(ptb, vocabulary=ptb.vocabulary[:1_003])
    kinds = (PLAIN, MIXTURES, ("softmax",) * 2, ("lms_plif",))
    shapes = ((ptb, "bf16"), (ptb, "float32"), (small, "float32"), (wikitext, "bf16"))
    for (text, precision), names in product(shapes[:count], kinds):
        layers = [layer_config(name, text.name) for name in names]
        step([trial(text.name, layer, precision, "paper") for layer in layers], text)
    step([trial("ptb", layer_config("gss", "ptb"), "bf16", "paper", optimizer="adam")] * 2, ptb)
    layers = [layer_config(name, "ptb") for name in PLAIN]
    step([transformer_trial("ptb", layer, "bf16", "paper") for layer in layers], ptb)
    with suppress(RuntimeError):  # a tensor on meta has no value to read
        launch_one_element(torch.device("meta"))


def all_kernels() -> dict[str, Any]:
    files = [
        path for path in (ROOT / "trainables").rglob("*.py") if "@triton.jit" in path.read_text()
    ]
    modules = [
        import_module(".".join(path.relative_to(ROOT).with_suffix("").parts)) for path in files
    ]
    return {
        _name(value): value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, JITFunction) and value.fn.__module__ == module.__name__
    }


def reached(kernel: Any) -> set[str]:
    called = [kernel.fn.__globals__.get(name) for name in kernel.fn.__code__.co_names]
    return {_name(kernel)}.union(
        *(reached(other) for other in called if isinstance(other, JITFunction))
    )


if __name__ == "__main__":
    compiler, kernels = Compiler(), all_kernels()
    driver.set_active(StandInDriver(int(sys.argv[1])))
    JITFunction.__getitem__ = lambda kernel, grid: compiler.launcher(kernel, grid)
    with like_a_gpu(WINDOW):
        take_steps(int(sys.argv[2]))
    missing = {*kernels}.difference(*(reached(kernels[name]) for name in compiler.compiled))
    kinds = {name: sorted(map(list, kinds), key=str) for name, kinds in compiler.compiled.items()}
    print(
        json.dumps(
            {"triton": triton.__version__, "not compiled": sorted(missing), "compiled": kinds}
        )
    )
