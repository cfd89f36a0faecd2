"""User-defined output layers: classes in a file identified by its content."""

from __future__ import annotations

import linecache
import sys
from types import ModuleType
from typing import Any

from trainables.config import CustomConfig, TextFile, defined_here
from trainables.errors import UserError
from trainables.output_layers.base import LayerShape, OutputLayer

_modules: dict[str, ModuleType] = {}


def load_layers(file: TextFile) -> None:
    """Run a file of output layers, once per process. Raises UserError if the file fails.

    Pass only a file that the user's own command named, never text from a store or a config.
    """
    digest = file.sha256
    if digest in _modules:
        return
    module = ModuleType(f"user_layers_{digest[:12]}")
    # Compilers and error messages look up the file's lines and the module by name.
    module.__file__ = f"{file.name} ({digest[:12]})"
    linecache.cache[module.__file__] = (
        len(file.text),
        None,
        file.text.splitlines(keepends=True),
        module.__file__,
    )
    sys.modules[module.__name__] = module
    try:
        code = compile(file.text, module.__file__, "exec", dont_inherit=True)
        exec(code, module.__dict__)
    except (Exception, SystemExit) as error:
        del sys.modules[module.__name__]
        raise UserError(
            f"the file of output layers {file.name} cannot be run: {type(error).__name__}: "
            f"{error}. Fix it."
        ) from error
    _modules[digest] = module


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
    layer: Any = defined_here(config)
    if layer is None and config.sha256 not in _modules:
        files = ", ".join(f"{module.__file__}" for module in _modules.values()) or "none"
        raise UserError(
            f"output layer {config.layer}: no loaded file has SHA-256 {config.sha256[:12]}... "
            f"(loaded: {files}). Run the trial through its study, or pass "
            "the unchanged file to `python -m trainables` with --layers."
        )
    layer = layer or getattr(_modules[config.sha256], config.layer, None)
    if not (isinstance(layer, type) and issubclass(layer, OutputLayer)):
        raise UserError(
            f"output layer {config.layer}: not a subclass of "
            "trainables.output_layers.OutputLayer. Fix it."
        )
    return layer
