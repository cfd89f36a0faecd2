"""Compile every kernel to a GPU's machine code through the project's own launches; Triton needs no
GPU for that.

`python -m tests.trainables.stack.compile_kernels 80 90` takes steps at paper shapes on the device meta,
whose tensors have no numbers. It checks each launch against a GPU's limits. Triton specialises
kernels as on a GPU of compute capability 8.0 or 9.0: by dtypes, by the alignment of pointers and by
divisors. Prints JSON: a summary, then a line for each kernel."""

from __future__ import annotations

import json
import linecache
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import torch
import triton
from torch import Tensor
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
from trainables.training import Trainer, WeightAverage

ROOT = Path(__file__).parents[3]
TOOLS = Path(triton.__file__).parent / "backends/nvidia/bin"
REGISTERS, SHARED_BYTES, MOST_WARPS = 65_536, 164 * 1024, 64
"""Of a multiprocessor; its shared memory on sm_80."""
MOST_PROGRAMS = (2**31 - 1, 65_535, 65_535)
"""Along the three axes of a grid."""
WITH_LONG_OFFSETS = {
    "product", "sums", "c_before", "c", "h", "by_output", "by_h", "by_c", "by_sums",
    "weight", "gradient", "average", "mean", "square",
}  # fmt: skip
"""Tensors whose offsets kernels compute in 64 bits."""
MOST_MODELS = 32
WINDOW = 3
"""Time steps; a longer window has more launches of the same shapes."""
MIXTURES = tuple(name for name in STACKED if hasattr(layer_config(name, "ptb"), "mixtures"))
"""Their models have other widths."""
PLAIN = tuple(name for name in STACKED if name not in MIXTURES)


class StandInDriver:
    """The driver of GPUs whose numbers are their architectures."""

    device = 0

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self.device, 32)

    def get_current_device(self) -> int:
        return self.device

    def get_current_stream(self, _device: int) -> int:
        return 0


class Compiler:
    """Compiles kernels instead of launching them."""

    def __init__(self, architectures: Sequence[int]) -> None:
        self._architectures, self._driver = architectures, StandInDriver()
        driver.set_active(self._driver)
        self.compiled = dict[int, tuple[Any, dict[str, Any]]]()
        """Machine code and facts, by the identity of the former, which Triton keeps for launches
        that are alike."""

    def launcher(self, kernel: Any, grid: tuple[int, ...]) -> Callable[..., None]:
        """Return what takes the place of `kernel[grid]`."""
        assert all(
            0 < programs <= most for programs, most in zip(grid, MOST_PROGRAMS, strict=False)
        ), grid

        def launch(*args: Any, **options: Any) -> None:
            constants = {name: value for name, value in options.items() if name in kernel.arg_names}
            arguments = kernel.signature.bind(*args, **constants).arguments
            for name, value in arguments.items():
                _check_argument(name, value)
            shown = {name: _shown(value) for name, value in arguments.items()}
            for architecture in self._architectures:
                self._driver.device = architecture
                code = kernel.warmup(*args, grid=grid, **options)
                facts = {"kernel": _name(kernel), "architecture": architecture, "arguments": shown}
                self.compiled.setdefault(id(code), (code, facts))

        return launch

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield what each compiled kernel is and uses."""
        for code, facts in self.compiled.values():
            yield {**facts, **_usage(code)}


def _check_argument(name: str, value: Any) -> None:
    if isinstance(value, Tensor):
        assert value.device.type == "meta", f"{name} would lie on the host"
        assert name in WITH_LONG_OFFSETS or value.numel() < 2**31, (
            f"{name} has more numbers than an offset counts"
        )
    elif isinstance(value, int):
        assert value < 2**31, name


def _shown(value: Any) -> Any:
    return str(value.dtype).removeprefix("torch.") if isinstance(value, Tensor) else value


def _name(kernel: Any) -> str:
    return f"{kernel.fn.__module__}.{kernel.fn.__name__}"


def _usage(code: Any) -> dict[str, Any]:
    """Return registers, bytes of local memory, resident warps, and source and bits of each access
    to global memory."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        Path(file.name).write_bytes(code.asm["cubin"])
        command = [str(TOOLS / "cuobjdump"), "-res-usage", file.name]
        usage = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    registers, stack, local = (
        int(re.findall(rf"{name}:(\d+)", usage)[0]) for name in ("REG", "STACK", "LOCAL")
    )
    warps, shared = code.metadata.num_warps, code.metadata.shared
    blocks = min(
        REGISTERS // (32 * warps * (registers + -registers % 8)), SHARED_BYTES // (shared + 1024)
    )
    ptx = code.asm["ptx"]
    results = re.findall(r"\batom\.\S+\s+(%\w+),", ptx)
    return {
        "registers": registers,
        "local": max(stack, local),
        "warps": min(MOST_WARPS, blocks * warps),
        "accesses": sorted(_accesses(ptx)),
        "atomics_with_a_result": sum(len(re.findall(rf"{name}\b", ptx)) > 2 for name in results),
    }


def _accesses(ptx: str) -> set[tuple[str, int]]:
    files, where = dict(re.findall(r'\.file\s+(\d+) "(.*?)"', ptx)), ("", 0)
    accesses = set[tuple[str, int]]()
    # Triton 3.8 repeats the line inside the assembly of a load, one too far.
    ptx = re.sub(
        r"// begin inline asm.*?// end",
        lambda asm: re.sub(r"\.loc.*", "", asm[0]),
        ptx,
        flags=re.DOTALL,
    )
    for line in ptx.splitlines():
        if place := re.match(r"\s*\.loc\s+(\d+)\s+(\d+)", line):
            where = files[place[1]], int(place[2])
        elif access := re.search(r"\b(?:ld|st)\.global\S*?(?:\.v(\d))?\.\w(\d+)\s", line):
            accesses.add((linecache.getline(*where).strip(), int(access[1] or 1) * int(access[2])))
    return accesses


def step(configs: Sequence[LanguageTrialConfig], text: Corpus, *, averaging: bool = False) -> None:
    """One step of a stack on the device meta, or of a trial alone."""
    with torch.device("meta"):
        trainers = [
            Trainer(config.model_copy(update={"seed": seed}), text, Runtime(device="meta"))
            for seed, config in enumerate(configs)
        ]
        for trainer in trainers if averaging else ():
            trainer.average = WeightAverage(trainer.model)
    (Stack(trainers) if len(trainers) > 1 else trainers[0]).step()
    assert all(
        tensor.dtype == torch.float32
        for trainer in trainers
        for pair in trainer.state
        for tensor in pair
    )


def take_steps() -> None:
    """Launch every kernel in every kind: vocabularies and widths of the papers, stacks of one kind
    and of many."""
    ptb, wikitext = random_corpus("ptb", "paper"), random_corpus("wikitext-2", "paper")
    small = replace(ptb, vocabulary=ptb.vocabulary[:1_003])
    kinds = (PLAIN, MIXTURES, ("softmax",) * 2)
    for text, precision, names in product((ptb, small, wikitext), ("bf16", "float32"), kinds):
        step(
            [trial(text.name, layer_config(name, text.name), precision, "paper") for name in names],
            text,
        )
    for name in ("lms_plif", "mos_plif"):
        config = trial("wikitext-2", layer_config(name, "wikitext-2"), "float32", "paper")
        step([config] * MOST_MODELS, wikitext)
        step([config], wikitext)
    adam = trial("ptb", layer_config("gss", "ptb"), "bf16", "paper", optimizer="adam")
    step([adam] * 2, ptb, averaging=True)
    step(
        [transformer_trial("ptb", layer_config(name, "ptb"), "bf16", "paper") for name in PLAIN],
        ptb,
    )
    with suppress(RuntimeError):  # the element has no number
        launch_one_element(torch.device("meta"))


def all_kernels() -> dict[str, Any]:
    """Return every function under trainables that Triton compiles."""
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
    """Return the kernel's name and those of the functions that it calls."""
    called = [kernel.fn.__globals__.get(name) for name in kernel.fn.__code__.co_names]
    return {_name(kernel)}.union(
        *(reached(other) for other in called if isinstance(other, JITFunction))
    )


if __name__ == "__main__":
    compiler = Compiler([int(architecture) for architecture in sys.argv[1:]])
    JITFunction.__getitem__ = lambda kernel, grid: compiler.launcher(kernel, grid)
    with like_a_gpu(WINDOW):
        take_steps()
    kernels = all_kernels()
    launched = {facts["kernel"] for _, facts in compiler.compiled.values()}
    missing = {*kernels}.difference(*(reached(kernels[name]) for name in launched))
    print(json.dumps({"triton": triton.__version__, "not compiled": sorted(missing)}))
    for line in compiler.lines():
        print(json.dumps(line))
