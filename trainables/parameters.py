"""How many parameters a config's model has, by arithmetic: a plan says so without building a
model."""

from __future__ import annotations

from trainables.config import (
    CustomConfig,
    LanguageModelConfig,
    LanguageTrialConfig,
    OutputLayerConfig,
    TransformerConfig,
    layer_parameters,
)
from trainables.errors import UserError


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


def in_millions(parameters: int) -> str:
    """Two decimals of a million, cut off and not rounded: so the paper prints them (33,556,078 is
    its 33.55)."""
    return f"{parameters // 10_000 / 100:.2f}"
