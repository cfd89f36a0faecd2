"""Output layers of the user's own: classes in a file that the user has named, found again by the file's content."""

from __future__ import annotations

import hashlib
import sys
from types import ModuleType

from trainables.errors import UserError
from trainables.layer_configs import CustomConfig, LayerFile, defined_here
from trainables.output_layers.base import LayerShape, OutputLayer

_loaded: dict[str, ModuleType] = {}
"""SHA-256 of a file -> the module made of it in this process."""


def load_layers(file: LayerFile) -> None:
    """Run a file of output layers, once in a process. Raises UserError where it cannot be run.

    Never call it with a text from a store or a config: only with what the user's own command named.
    """
    digest = hashlib.sha256(file.text.encode()).hexdigest()
    if digest in _loaded:
        return
    module = ModuleType(f"user_layers_{digest[:12]}")
    sys.modules[module.__name__] = module  # where dataclasses and the like look their names up
    try:
        exec(compile(file.text, file.name, "exec"), module.__dict__)
    except Exception as error:
        raise UserError(
            f"the file of output layers {file.name} cannot be read: {type(error).__name__}: {error}; mend it"
        ) from error
    _loaded[digest] = module


def build_custom(config: CustomConfig, shape: LayerShape) -> OutputLayer:
    """The user's layer. Raises UserError where its file was not loaded, or the class cannot be made."""
    layer = defined_here(config) or getattr(_loaded.get(config.sha256), config.layer, None)
    if layer is None:
        raise UserError(
            f"the output layer {config.layer} is in a file with SHA-256 {config.sha256[:12]}..., which this process "
            "was not given: run it through its study, or name the file by --layers"
        )
    try:
        built = layer(shape, **config.settings)
    except Exception as error:
        raise UserError(
            f"the output layer {config.layer} cannot be made with the settings {config.settings}: "
            f"{type(error).__name__}: {error}; mend the class or the settings"
        ) from error
    if not isinstance(built, OutputLayer):
        raise UserError(f"an output layer is a trainables.output_layers.OutputLayer; {config.layer} is none: mend it")
    return built
