"""The GPU memory that a stack takes, by arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

from trainables.config import LanguageTrialConfig, MixtureConfig, TransformerTrialConfig, chunk_rows, model_size
from trainables.parameters import parameter_count

GPU_SHARE = 0.8
"""Share of a GPU's free memory that a plan uses; allocators waste the rest."""


def stack_size(configs: Sequence[LanguageTrialConfig], vocabulary: int, gpu_bytes: float) -> int:
    """Return how many of these trials a GPU with `gpu_bytes` free bytes trains as one; at least 1.

    All have one `stack_key`.
    """
    largest = max(_numbers(config, vocabulary) for config in configs)
    return max(1, int((GPU_SHARE * gpu_bytes / 4 - _chunks(configs[0], vocabulary)) / largest))


def stack_bytes(config: LanguageTrialConfig, vocabulary: int, trials: int) -> float:
    """Return the free bytes of a GPU for which `stack_size` gives `trials` trials of this config."""
    return 4 * (trials * _numbers(config, vocabulary) + _chunks(config, vocabulary)) / GPU_SHARE


def _chunks(config: LanguageTrialConfig, vocabulary: int) -> int:
    """Numbers in the buffers of the loss, which all trials share."""
    return 6 * chunk_rows(vocabulary, config.model.embedding_width, 4, "cuda") * vocabulary


def _numbers(config: LanguageTrialConfig, vocabulary: int) -> float:
    """Numbers that one more trial of a stack keeps in memory.

    Weights, their gradients, those of the loss, average, kept copy, moments and the dropped weights. For the longest
    window: what the backward pass needs, states and masks, and the masked outputs. Output weights A B, their gradient
    and that of the loss.

    Gradients, the window's numbers and A B count twice: captured steps and steps without capture have their own.
    """
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
    return copies * parameter_count(config, vocabulary) + dropped + head + 2 * size.tokens * activations
