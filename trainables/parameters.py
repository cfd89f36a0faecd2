"""How many parameters a config's model has, by arithmetic: a plan says so without building a model."""

from __future__ import annotations

from trainables.config.language_model import TrialConfig
from trainables.config.output_layer import CustomConfig, LmsPlifConfig, MixtureConfig, MonotoneNnConfig, MosPlifConfig
from trainables.errors import UserError


def parameter_count(config: TrialConfig, vocabulary_size: int) -> int:
    """Trainable numbers: embedding (shared with the output), three LSTM layers of two biases each, output layer."""
    model = config.model
    recurrent = sum(4 * out * (into + out + 2) for into, out in model.layer_widths)
    return vocabulary_size * model.embedding_width + recurrent + _of_output_layer(config, vocabulary_size)


def _of_output_layer(config: TrialConfig, vocabulary_size: int) -> int:
    """Those that the output layer owns: its bias, and what its kind adds."""
    layer, model = config.output_layer, config.model
    if isinstance(layer, CustomConfig):
        return _of_custom_layer(layer, config, vocabulary_size)
    added = 0
    if isinstance(layer, LmsPlifConfig | MosPlifConfig):
        added += layer.knots
    if isinstance(layer, MonotoneNnConfig):
        added += 3 * layer.units
    if isinstance(layer, MixtureConfig):
        prior, latent = model.context_width, model.embedding_width * (model.context_width + 1)
        added += layer.mixtures * (prior + latent)
    return vocabulary_size + added


def _of_custom_layer(layer: CustomConfig, config: TrialConfig, vocabulary_size: int) -> int:
    """Only the class itself knows; the study that names it has loaded torch already."""
    import torch

    from trainables.output_layers import LayerShape, build_output_layer

    shape = LayerShape(
        vocabulary_size=vocabulary_size,
        embedding_width=config.model.embedding_width,
        context_width=config.model.context_width,
    )
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
