"""How many trials a GPU trains as one best: steps of some sizes are timed, on models that are
thrown away."""

from __future__ import annotations

import gc
import time
from collections.abc import Hashable, Iterable, Mapping, Sequence

import torch
from typing_extensions import override

from trainables.config import LanguageTrialConfig, stack_key
from trainables.corpora import Corpus, load
from trainables.device import (
    forget_cache,
    global_random_states,
    gpu_name,
    on_gpu,
    repeat_bits,
    set_global_random_states,
    wait,
)
from trainables.pulse import PULSE
from trainables.runtime import Runtime
from trainables.stack.stack import Stack
from trainables.training import Trainer, Window

SIZES = (1, 2, 4, 8, 16)
NEAR_BEST = 0.95
"""Of the most trials a second; fewer trials at a time lose less when their process dies."""
WARM_UP, TIMED = 2, 3
"""Steps; of those timed, the fastest one counts."""
_measured: dict[Hashable, dict[int, float]] = {}
"""What was timed in this process."""


def best_size(rates: Mapping[int, float]) -> int:
    """Of sizes with their trial-steps a second, at least one, the smallest whose rate is near the
    best."""
    best = max(rates.values())
    return min(size for size, rate in rates.items() if rate >= NEAR_BEST * best)


def measured_rates(configs: Sequence[LanguageTrialConfig], runtime: Runtime) -> dict[int, float]:
    """Trial-steps a second on the runtime's device by size, up to all of these trials, which have
    one `stack_key`, at a time; without the sizes from the first one on that the memory does not
    take. Timed once in a process.

    Touches no trial: neither a folder nor a random stream.
    """
    kinds = frozenset((config.output_layer.name, _mixtures(config)) for config in configs)
    device = gpu_name() if on_gpu(runtime.device) else runtime.device
    key = (stack_key(configs[0]), kinds, device, len(configs))
    if key not in _measured:
        repeat_bits(runtime.deterministic)  # cuBLAS takes it from then on when it is first used
        before = global_random_states(runtime.device)
        try:
            _measured[key] = _time(configs, runtime)
        finally:
            set_global_random_states(before, runtime.device)
    return _measured[key]


def _mixtures(config: LanguageTrialConfig) -> int:
    return getattr(config.output_layer, "mixtures", 1)


def _time(configs: Sequence[LanguageTrialConfig], runtime: Runtime) -> dict[int, float]:
    corpus = load(configs[0].corpus, data_dir=runtime.data_dir)
    rates: dict[int, float] = {}
    for size in _sizes(len(configs)):
        PULSE.enter("while it timed how many trials train best as one")
        seconds = _round_seconds(configs, corpus, runtime, size)
        gc.collect()  # a model and its gradients hold each other
        forget_cache(runtime.device)
        if seconds is None:
            break
        rates[size] = len(configs) / seconds
    return rates


def _sizes(trials: int) -> Iterable[int]:
    return sorted({*(size for size in SIZES if size < trials), trials})


def _round_seconds(
    configs: Sequence[LanguageTrialConfig], corpus: Corpus, runtime: Runtime, size: int
) -> float | None:
    """One step of every trial, so many at a time; None where the memory does not take them. Stacks
    of the same kinds of layers take the same time, so that one of them is timed."""
    seconds: dict[Hashable, float] = {}
    total = 0.0
    for start in range(0, len(configs), size):
        chosen = configs[start : start + size]
        kinds = tuple((config.output_layer.name, _mixtures(config)) for config in chosen)
        if kinds not in seconds:
            try:
                seconds[kinds] = _step_seconds(chosen, corpus, runtime)
            except torch.OutOfMemoryError:
                return None
        total += seconds[kinds]
    return total


def _step_seconds(
    configs: Sequence[LanguageTrialConfig], corpus: Corpus, runtime: Runtime
) -> float:
    stack = Stack([_Timed(config, corpus, runtime) for config in configs])
    times = []
    for _ in range(WARM_UP + TIMED):
        wait(runtime.device)
        started = time.perf_counter()
        stack.step()
        wait(runtime.device)
        times.append(time.perf_counter() - started)
    return min(times[WARM_UP:])


class _Timed(Trainer):
    """Makes the same step again and again, of the usual window."""

    @override
    def next_window(self) -> Window:
        PULSE.touch()
        return self.usual_window
