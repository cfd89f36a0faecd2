"""How many parameters a config's model has, and the memory of a stack of such models, by
arithmetic: a plan says so without building a model."""

from __future__ import annotations

from collections.abc import Sequence

from trainables.config import (
    CustomConfig,
    LanguageModelConfig,
    LanguageTrialConfig,
    MixtureConfig,
    OutputLayerConfig,
    TransformerConfig,
    TransformerTrialConfig,
    chunk_rows,
    layer_parameters,
    model_size,
)
from trainables.errors import UserError

GPU_SHARE = 0.8
"""Share of a GPU's free memory that a plan uses; allocators waste the rest."""


def parameter_count(config: LanguageTrialConfig, vocabulary_size: int) -> int:
    """Trainable numbers: embedding, layers, output layer, and output weights where they are not the
    embedding."""
    match config.model:
        case LanguageModelConfig() as model:
            return _count_awd_lstm(model, config.output_layer, vocabulary_size)
        case TransformerConfig() as model:
            return _count_transformer(model, config.output_layer, vocabulary_size)


def _count_awd_lstm(model: LanguageModelConfig, layer: OutputLayerConfig, vocabulary: int) -> int:
    """Three LSTM layers of two biases each."""
    width = model.embedding_width
    recurrent = sum(4 * out * (into + out + 2) for into, out in model.layer_widths)
    head = (model.head_rank or 0) * (vocabulary + width)
    return (
        vocabulary * width
        + recurrent
        + head
        + _count_layer(layer, vocabulary, width, model.context_width)
    )


def _count_transformer(model: TransformerConfig, layer: OutputLayerConfig, vocabulary: int) -> int:
    """A layer has query, key, value and projection, three matrices of the feed-forward layer, and
    two norms."""
    width, rank = model.width, model.head_rank
    layers = model.layers * (4 * width**2 + 3 * width * model.feed_forward_width + 2 * width)
    untied = vocabulary * width if rank is None else rank * (vocabulary + width)
    head = untied if model.head == "untied" else 0
    return (
        vocabulary * width + layers + width + head + _count_layer(layer, vocabulary, width, width)
    )


def _count_layer(
    layer: OutputLayerConfig, vocabulary: int, embedding_width: int, context_width: int
) -> int:
    widths = {"embedding_width": embedding_width, "context_width": context_width}
    if isinstance(layer, CustomConfig):
        return _count_custom_layer(layer, vocabulary_size=vocabulary, **widths)
    return layer_parameters(layer, vocabulary=vocabulary, **widths)


def _count_custom_layer(layer: CustomConfig, **sizes: int) -> int:
    """Only the class itself knows; the study that names it has loaded torch already."""
    import torch

    from trainables.output_layers import LayerShape, build_output_layer

    shape = LayerShape(**sizes)
    with torch.random.fork_rng():
        try:
            with torch.device("meta"):
                built = build_output_layer(layer, shape)
        except (
            UserError
        ):  # a constructor may need real numbers, which the device without memory has not
            built = build_output_layer(layer, shape)
    return sum(parameter.numel() for parameter in built.parameters() if parameter.requires_grad)


def stack_size(configs: Sequence[LanguageTrialConfig], vocabulary: int, gpu_bytes: float) -> int:
    """Return how many of these trials a GPU with `gpu_bytes` free bytes trains as one; at least 1.

    All have one `stack_key`.
    """
    one, two = (
        max(stack_bytes(config, vocabulary, trials) for config in configs) for trials in (1, 2)
    )
    return max(1, int(1 + (gpu_bytes - one) / (two - one)))


def stack_bytes(config: LanguageTrialConfig, vocabulary: int, trials: int) -> float:
    """Return the free bytes of a GPU that a plan asks for to train `trials` trials of this config
    as one."""
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


def in_millions(parameters: int) -> str:
    """Two decimals of a million, cut off and not rounded: so the paper prints them (33,556,078 is
    its 33.55)."""
    return f"{parameters // 10_000 / 100:.2f}"
