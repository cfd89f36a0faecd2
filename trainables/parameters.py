"""Parameter counts by arithmetic, so that a plan builds no model."""

from __future__ import annotations

from trainables.config import (
    CustomConfig,
    LanguageModelConfig,
    LanguageTrialConfig,
    layer_parameters,
)
from trainables.errors import UserError


def parameter_count(config: LanguageTrialConfig, vocabulary_size: int) -> int:
    """Return the number of trainable parameters."""
    # An LSTM layer has two biases; a Transformer layer four attention matrices, three feed-forward
    # matrices and two norms.
    model = config.model
    width, embedding = model.embedding_width, vocabulary_size * model.embedding_width
    head = (model.head_rank or 0) * (vocabulary_size + width)
    if isinstance(model, LanguageModelConfig):
        layers = sum(4 * outputs * (inputs + outputs + 2) for inputs, outputs in model.layer_widths)
    else:
        layer = 4 * width**2 + 3 * width * model.feed_forward_width + 2 * width
        layers = model.layers * layer + width
        if model.head == "untied" and model.head_rank is None:
            head = embedding
    return embedding + layers + head + _count_layer(config, vocabulary_size)


def _count_layer(config: LanguageTrialConfig, vocabulary_size: int) -> int:
    model, layer = config.model, config.output_layer
    widths = {"embedding_width": model.embedding_width, "context_width": model.context_width}
    if not isinstance(layer, CustomConfig):
        return layer_parameters(layer, vocabulary=vocabulary_size, **widths)
    # Only the class knows its parameters; the study that names it has loaded torch already.
    import torch

    from trainables.output_layers import LayerShape, build_output_layer

    shape = LayerShape(vocabulary_size=vocabulary_size, **widths)
    with torch.random.fork_rng():
        try:
            with torch.device("meta"):
                instance = build_output_layer(layer, shape)
        except UserError:  # a constructor may need real numbers
            instance = build_output_layer(layer, shape)
    return sum(parameter.numel() for parameter in instance.parameters() if parameter.requires_grad)


def in_millions(parameters: int) -> str:
    """Return millions with two decimals, truncated as in the paper (33,556,078 gives 33.55)."""
    return f"{parameters // 10_000 / 100:.2f}"
