"""Count a step's launches of Triton kernels; otherwise, a fallback would only look slow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import trainables
from gpu_proof.report import Question
from gpu_proof.trials import LAYERS, STACKED, Model, new_trainers
from trainables.stack import Stack

LOSS, CELL = "trainables.output_layers.kernels", "trainables.stack.cell_kernels"
PROBE = "trainables.one_element_kernel"


def questions(device: str, _folder: Path) -> Iterator[Question]:
    """Check a step of each kind of stack, and of trials trained alone."""
    counts = Counter[str]()
    for name in STACKED:
        yield Question(
            f"stack, {name}", partial(_step, counts, device, "awd_lstm", [name] * 2, {LOSS, CELL})
        )
        yield Question(
            f"stack of Transformers, {name}",
            partial(_step, counts, device, "transformer", [name] * 2, {LOSS}),
        )
    for name in LAYERS:
        modules = {LOSS} if name in STACKED else set[str]()
        yield Question(
            f"alone, {name}", partial(_step, counts, device, "awd_lstm", [name], modules)
        )
    yield Question("every file of kernels", partial(_check_files, counts))


def _step(
    total: Counter[str], device: str, model: Model, layers: Sequence[str], modules: set[str]
) -> str:
    trainers = new_trainers(device, layers, model)
    step = Stack(trainers).step if len(trainers) > 1 else trainers[0].step
    with launches() as counts:
        step()
    total.update(counts)
    _raise_if_missing(modules - counts.keys())
    return f"{counts.total()} launches"


def _check_files(counts: Counter[str]) -> str:
    folder = Path(trainables.__path__[0])
    files = [
        path.relative_to(folder.parent)
        for path in folder.rglob("*.py")
        if "@triton.jit" in path.read_text()
    ]
    names = {".".join(path.with_suffix("").parts) for path in files} - {PROBE}
    _raise_if_missing(names - counts.keys())
    return f"{counts.total()} launches in {len(names)} files"


def _raise_if_missing(missing: set[str]) -> None:
    if missing:
        raise RuntimeError(
            f"no kernel of {', '.join(sorted(missing))} was launched: the fallback ran"
        )


@contextmanager
def launches() -> Iterator[Counter[str]]:
    """Count launches of Triton kernels by module; none if Triton is not installed."""
    counts = Counter[str]()
    try:
        from triton.runtime.jit import KernelInterface
    except ModuleNotFoundError:
        yield counts
        return
    launch: Callable[..., Any] = KernelInterface.__getitem__

    def count_launch(kernel: Any, grid: Any) -> Any:
        counts[kernel.fn.__module__] += 1
        return launch(kernel, grid)

    with patch.object(KernelInterface, "__getitem__", count_launch):
        yield counts
