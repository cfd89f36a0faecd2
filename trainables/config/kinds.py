"""Union type of all trial configs."""

from __future__ import annotations

from typing import Annotated, Any, get_args

from pydantic import Field, TypeAdapter

from trainables.config.dirichlet import DirichletConfig
from trainables.config.experiment import PressNoiseConfig, TrueRankConfig, WordPairsConfig
from trainables.config.hidden_layers import LayerJacobianConfig, LayerTaskConfig
from trainables.config.language_model import TrialConfig
from trainables.config.output_layer import OutputLayerConfig
from trainables.config.trainable import Command, Trainable, UnloadedTrainable
from trainables.config.transformer import TransformerTrialConfig
from trainables.config.user_code import user_class

LanguageTrialConfig = TrialConfig | TransformerTrialConfig
"""Configs of trials that train a language model."""
_Kind = (
    TrialConfig
    | TransformerTrialConfig
    | DirichletConfig
    | LayerJacobianConfig
    | LayerTaskConfig
    | PressNoiseConfig
    | TrueRankConfig
    | WordPairsConfig
    | Trainable
    | Command
)
AnyConfig = Annotated[_Kind, Field(discriminator="kind")]
KINDS: tuple[type[_Kind], ...] = get_args(_Kind)
_CONFIG: TypeAdapter[AnyConfig] = TypeAdapter(AnyConfig)


def read_config(content: Any) -> AnyConfig:
    """Return the config in parsed JSON data. The default kind is language_model.

    Raises ValidationError. A user's trial whose file is not loaded is an `UnloadedTrainable`.
    """
    if isinstance(content, dict):
        content = {"kind": "language_model", **content}
        if content["kind"] == "trainable":
            sha256, name = (str(content.get(key)) for key in ("sha256", "trainable"))
            user_type: type[Trainable] = user_class(sha256, name, Trainable) or UnloadedTrainable
            return user_type.model_validate(content)
    return _CONFIG.validate_python(content)


def output_layer_of(config: AnyConfig) -> OutputLayerConfig | None:
    """Return the trial's output layer, if any."""
    return getattr(config, "output_layer", None)
