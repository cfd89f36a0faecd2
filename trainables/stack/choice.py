"""Choose how many trials train as one stack."""

from __future__ import annotations

from collections.abc import Sequence

from trainables.config import (
    LanguageTrialConfig,
    MixtureConfig,
    TransformerTrialConfig,
    chunk_rows,
    model_size,
)
from trainables.corpora import load
from trainables.parameters import parameter_count
from trainables.runtime import Runtime

GPU_SHARE = 0.8
"""Share of free GPU memory that a stack may use; allocators waste the rest."""


def chosen_size(
    configs: Sequence[LanguageTrialConfig], runtime: Runtime, max_size: int, free_bytes: float
) -> tuple[int, str]:
    """Return the number of trials that fit in free GPU memory, 1 to `max_size`, and the reason."""
    vocabulary = len(load(configs[0].corpus, data_dir=runtime.data_dir).vocabulary)
    one_bytes, two_bytes = (
        max(stack_bytes(config, vocabulary, trials) for config in configs) for trials in (1, 2)
    )
    size = max(
        1, min(max_size, len(configs), int(1 + (free_bytes - one_bytes) / (two_bytes - one_bytes)))
    )
    reason = f"because the GPU has {free_bytes / 2**30:.1f} GiB of free memory"
    return size, f"up to {size} trials train as one stack, {reason}"


def stack_bytes(config: LanguageTrialConfig, vocabulary: int, trials: int) -> float:
    """Return the free GPU bytes needed to train `trials` trials as one stack."""
    chunks = 6 * chunk_rows(vocabulary, config.model.embedding_width, 4, "cuda") * vocabulary
    return 4 * (trials * _stacked_numbers(config, vocabulary) + chunks) / GPU_SHARE


def _stacked_numbers(config: LanguageTrialConfig, vocabulary: int) -> float:
    # Numbers per further trial: (1) weights, gradients, loss gradients, average, kept copy, moments
    # and dropped weights; (2) for the longest window: values for the backward pass, states, masks
    # and masked outputs; (3) output weights A B, their gradient and loss gradient. Gradients,
    # window values and A B count twice: for captured and for other steps.
    width, layer, size = config.model.embedding_width, config.output_layer, model_size(config)
    if isinstance(config, TransformerTrialConfig):
        # One mask per dropout.
        copies, dropped_weights = 8, 0
        activations = size.activations + (1 + 2 * config.model.layers) * width
    else:
        widths = config.model.layer_widths
        copies = 9 if config.training.optimizer == "adam" else 7
        dropped_weights = sum(12 * out * out for _, out in widths)
        activations = 6 * width + sum(14 * out for _, out in widths)
    if isinstance(layer, MixtureConfig):
        activations += 8 * layer.mixtures * width
    head = 0 if config.model.head_rank is None else 6 * vocabulary * width
    return (
        copies * parameter_count(config, vocabulary)
        + dropped_weights
        + head
        + 2 * size.tokens * activations
    )
