"""How many parameters a config's model has, by arithmetic: a plan says so without building a model."""

from __future__ import annotations

from trainables.config import CustomConfig, TrialConfig, layer_parameters
from trainables.errors import UserError


def parameter_count(config: TrialConfig, vocabulary_size: int) -> int:
    """Trainable numbers: embedding (shared with the output but where that has its own rank), three LSTM layers of two
    biases each, output layer."""
    model, layer = config.model, config.output_layer
    widths = {"embedding_width": model.embedding_width, "context_width": model.context_width}
    recurrent = sum(4 * out * (into + out + 2) for into, out in model.layer_widths)
    if isinstance(layer, CustomConfig):
        output = _count_custom_layer(layer, vocabulary_size=vocabulary_size, **widths)
    else:
        output = layer_parameters(layer, vocabulary=vocabulary_size, **widths)
    head = (model.head_rank or 0) * (vocabulary_size + model.embedding_width)
    return vocabulary_size * model.embedding_width + recurrent + output + head


def _count_custom_layer(layer: CustomConfig, **sizes: int) -> int:
    """Only the class itself knows; the study that names it has loaded torch already."""
    import torch

    from trainables.output_layers import LayerShape, build_output_layer

    shape = LayerShape(**sizes)
    with torch.random.fork_rng():
        try:
            with torch.device("meta"):
                built = build_output_layer(layer, shape)
        except UserError:  # a constructor may need real numbers, which the device without memory has not
            built = build_output_layer(layer, shape)
    return sum(parameter.numel() for parameter in built.parameters() if parameter.requires_grad)


def in_millions(parameters: int) -> str:
    """Two decimals of a million, cut off and not rounded: so the paper prints them (33,556,078 is its 33.55)."""
    return f"{parameters // 10_000 / 100:.2f}"
