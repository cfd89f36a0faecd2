"""Builds the output layer of a config."""

from __future__ import annotations

from trainables.config import (
    CustomConfig,
    GssConfig,
    LmsPlifConfig,
    LmsPlifFrozenConfig,
    MixtureConfig,
    MocConfig,
    MonotoneNnConfig,
    MosPlifConfig,
    OutputLayerConfig,
    SigSoftmaxConfig,
    SoftcapConfig,
)
from trainables.output_layers.base import LayerShape, OutputLayer, PointwiseSoftmax
from trainables.output_layers.custom import build_custom
from trainables.output_layers.gss import SmoothBend
from trainables.output_layers.mixtures import MixtureOfContexts, MixtureOfSoftmaxes
from trainables.output_layers.monotone_nn import MonotoneNetwork
from trainables.output_layers.plif import PiecewiseLinear
from trainables.output_layers.pointwise import Identity, Pointwise
from trainables.output_layers.softcap import Softcap


def build_output_layer(config: OutputLayerConfig, shape: LayerShape) -> OutputLayer:
    """Return the layer of `config`; `OutputLayer.initialise` draws its weights.

    Raises UserError for a user's layer whose file is not loaded.
    """
    match config:
        case CustomConfig():
            return build_custom(config, shape)
        case MixtureConfig(mixtures=mixtures, latent_dropout=dropout):
            mixture = MixtureOfContexts if isinstance(config, MocConfig) else MixtureOfSoftmaxes
            return mixture(
                shape,
                mixtures=mixtures,
                latent_dropout=dropout,
                function=pointwise_function(config),
            )
        case _:
            return PointwiseSoftmax(shape, pointwise_function(config))


def pointwise_function(config: OutputLayerConfig) -> Pointwise:
    """Return a layer's function of one logit; the identity if it has none."""
    match config:
        case SigSoftmaxConfig():
            return SmoothBend(c=0.0, k=2.0)
        case GssConfig(c=c, k=k):
            return SmoothBend(c=c, k=k)
        case SoftcapConfig(form=form, cap=cap):
            return Softcap(form=form, cap=cap)
        case LmsPlifConfig() | LmsPlifFrozenConfig() | MosPlifConfig():
            rate = None if isinstance(config, LmsPlifFrozenConfig) else config.learning_rate
            return PiecewiseLinear(config.knots, limit=config.limit, learning_rate=rate)
        case MonotoneNnConfig(units=units):
            return MonotoneNetwork(units)
        case _:
            return Identity()
