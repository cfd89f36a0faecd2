"""How many trials a GPU trains as one: as many as its memory takes, by arithmetic."""

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
"""Share of a GPU's free memory that is planned with; allocators waste the rest."""


def chosen_size(
    configs: Sequence[LanguageTrialConfig], runtime: Runtime, most: int, free_bytes: float
) -> tuple[int, str]:
    """Return how many trials, at least 1 and at most `most` at a time, fit in the free memory of
    the GPU, and why, as a clause. All have one `stack_key`."""
    vocabulary = len(load(configs[0].corpus, data_dir=runtime.data_dir).vocabulary)
    one, two = (
        max(stack_bytes(config, vocabulary, trials) for config in configs) for trials in (1, 2)
    )
    size = max(1, min(most, len(configs), int(1 + (free_bytes - one) / (two - one))))
    reason = f"by the free memory of {free_bytes / 2**30:.1f} GiB"
    return size, f"up to {size} trials are trained as one, {reason}"


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
