"""User-defined output layers: classes in a file identified by its content."""

from __future__ import annotations

from trainables.config import CustomConfig, require_code, user_class
from trainables.errors import UserError
from trainables.output_layers.base import LayerShape, OutputLayer


def build_custom(config: CustomConfig, shape: LayerShape) -> OutputLayer:
    """Return the user's layer. Raises UserError if its file is not loaded or the class fails."""
    layer = _layer_class(config)
    try:
        result: OutputLayer = layer(shape, **config.settings)
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"output layer {config.layer}: cannot be built with the settings {config.settings} "
            f"({type(error).__name__}: {error}). Fix the class or the settings."
        ) from error
    buffers = [name for name, _ in result.named_buffers()]
    if buffers:
        raise UserError(
            f"output layer {config.layer}: buffers ({', '.join(buffers)}) are not saved with the "
            "weights. Make each a torch.nn.Parameter with requires_grad=False, or "
            "compute it in the forward pass."
        )
    return result


def _layer_class(config: CustomConfig) -> type[OutputLayer]:
    require_code(config.sha256, f"output layer {config.layer}")
    layer = user_class(config.sha256, config.layer, OutputLayer)  # type: ignore[type-abstract]
    if layer is None:
        raise UserError(
            f"output layer {config.layer}: not a subclass of "
            "trainables.output_layers.OutputLayer. Fix it."
        )
    return layer
