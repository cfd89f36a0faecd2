"""How many trials a GPU trains as one: as many as its memory takes, by arithmetic; of these, by
the time of steps of some sizes, on models that are thrown away."""

from __future__ import annotations

import gc
import time
from collections.abc import Hashable, Mapping, Sequence

import torch
from typing_extensions import override

from trainables.config import (
    LanguageTrialConfig,
    MixtureConfig,
    TransformerTrialConfig,
    chunk_rows,
    model_size,
)
from trainables.corpora import Corpus, load
from trainables.device import (
    forget_cache,
    global_random_states,
    repeat_bits,
    set_global_random_states,
    wait,
)
from trainables.parameters import parameter_count
from trainables.pulse import PULSE
from trainables.runtime import Runtime
from trainables.stack.stack import Stack
from trainables.training import Trainer, Window

GPU_SHARE = 0.8
"""Share of a GPU's free memory that is planned with; allocators waste the rest."""
SIZES = (1, 2, 4, 8, 16)
NEAR_BEST = 0.95
"""Of the most trials a second; fewer trials at a time lose less when their process dies."""
WARM_UP, TIMED = 2, 3
"""Steps; of those timed, the fastest one counts."""


def chosen_size(
    configs: Sequence[LanguageTrialConfig], runtime: Runtime, most: int, free_bytes: float
) -> tuple[int, str]:
    """Return how many trials, at most `most` at a time, train fastest within the free memory of the
    GPU, and why, as a clause. All have one `stack_key`."""
    vocabulary = load(configs[0].corpus, data_dir=runtime.data_dir).vocabulary
    size = min(most, len(configs), stack_size(configs, len(vocabulary), free_bytes))
    rates = measured_rates(configs[:size], runtime) if size > 1 else {}
    if rates:
        size = best_size(rates)
        steps = ", ".join(f"{rate:.3g} with {trials}" for trials, rate in rates.items())
        reason = f"by steps of trials a second: {steps}"
    else:
        reason = f"by the free memory of {free_bytes / 2**30:.1f} GiB"
    return size, f"up to {size} trials are trained as one, {reason}"


def stack_size(configs: Sequence[LanguageTrialConfig], vocabulary: int, gpu_bytes: float) -> int:
    """Return how many of these trials a GPU with `gpu_bytes` free bytes trains as one; at least 1.

    All have one `stack_key`.
    """
    one, two = (
        max(stack_bytes(config, vocabulary, trials) for config in configs) for trials in (1, 2)
    )
    return max(1, int(1 + (gpu_bytes - one) / (two - one)))


def stack_bytes(config: LanguageTrialConfig, vocabulary: int, trials: int) -> float:
    """Return the free bytes of a GPU that training `trials` trials of this config as one takes."""
    chunks = 6 * chunk_rows(vocabulary, config.model.embedding_width, 4, "cuda") * vocabulary
    return 4 * (trials * _stacked_numbers(config, vocabulary) + chunks) / GPU_SHARE


def _stacked_numbers(config: LanguageTrialConfig, vocabulary: int) -> float:
    """Numbers that one more trial of a stack keeps in memory.

    Weights, their gradients, those of the loss, average, kept copy, moments and the dropped
    weights. For the longest window: what the backward pass needs, states and masks, and the masked
    outputs. Output weights A B, their gradient and that of the loss.

    Gradients, the window's numbers and A B count twice: captured steps and steps without capture
    have their own."""
    width, layer, size = config.model.embedding_width, config.output_layer, model_size(config)
    if isinstance(config, TransformerTrialConfig):
        # A mask of every place where something is dropped.
        copies, dropped = 8, 0
        activations = size.activations + (1 + 2 * config.model.layers) * width
    else:
        widths = config.model.layer_widths
        copies = 9 if config.training.optimizer == "adam" else 7
        dropped = sum(12 * out * out for _, out in widths)
        activations = 6 * width + sum(14 * out for _, out in widths)
    if isinstance(layer, MixtureConfig):
        activations += 8 * layer.mixtures * width
    head = 0 if config.model.head_rank is None else 6 * vocabulary * width
    return (
        copies * parameter_count(config, vocabulary)
        + dropped
        + head
        + 2 * size.tokens * activations
    )


def best_size(rates: Mapping[int, float]) -> int:
    """Of sizes with their trial-steps a second, at least one, the smallest whose rate is near the
    best."""
    best = max(rates.values())
    return min(size for size, rate in rates.items() if rate >= NEAR_BEST * best)


def measured_rates(configs: Sequence[LanguageTrialConfig], runtime: Runtime) -> dict[int, float]:
    """Trial-steps a second on the runtime's device by size, up to all of these trials, which have
    one `stack_key`; without the sizes from the first one on that the memory does not take.

    Touches no trial: neither a folder nor a random stream.
    """
    corpus = load(configs[0].corpus, data_dir=runtime.data_dir)
    repeat_bits(runtime.deterministic)  # cuBLAS takes it from then on when it is first used
    before, rates = global_random_states(runtime.device), dict[int, float]()
    try:
        for size in sorted({*(size for size in SIZES if size < len(configs)), len(configs)}):
            PULSE.enter("while it timed how many trials train best as one")
            try:
                rates[size] = len(configs) / _round_seconds(configs, corpus, runtime, size)
            except torch.OutOfMemoryError:
                break
            finally:
                gc.collect()  # a model and its gradients hold each other
                forget_cache(runtime.device)
    finally:
        set_global_random_states(before, runtime.device)
    return rates


def _round_seconds(
    configs: Sequence[LanguageTrialConfig], corpus: Corpus, runtime: Runtime, size: int
) -> float:
    """One step of every trial, `size` at a time. Stacks of the same kinds of layers take the same
    time, so that one of them is timed."""
    seconds: dict[Hashable, float] = {}
    total = 0.0
    for start in range(0, len(configs), size):
        stack = configs[start : start + size]
        kinds = tuple((c.output_layer.name, getattr(c.output_layer, "mixtures", 1)) for c in stack)
        if kinds not in seconds:
            seconds[kinds] = _step_seconds(stack, corpus, runtime)
        total += seconds[kinds]
    return total


def _step_seconds(
    configs: Sequence[LanguageTrialConfig], corpus: Corpus, runtime: Runtime
) -> float:
    stack, times = Stack([_Timed(config, corpus, runtime) for config in configs]), list[float]()
    for _ in range(WARM_UP + TIMED):
        wait(runtime.device)
        started = time.perf_counter()
        stack.step()
        wait(runtime.device)
        times.append(time.perf_counter() - started)
    return min(times[WARM_UP:])


class _Timed(Trainer):
    """Makes the same step again and again, through the longest window."""

    @override
    def next_window(self) -> Window:
        PULSE.touch()
        return Window(0, self.longest_window, self.longest_window)
