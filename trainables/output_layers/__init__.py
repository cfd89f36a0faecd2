"""Output layers: from the hidden states of the last LSTM layer to log-probabilities, and to a training loss."""

from __future__ import annotations

from trainables.config import GssConfig, OutputLayerConfig, SigSoftmaxConfig, SoftmaxConfig
from trainables.output_layers.base import OutputLayer, PointwiseSoftmax
from trainables.output_layers.gss import GeneralizedSigSoftmax, SigSoftmax
from trainables.output_layers.softmax import Softmax

__all__ = ["GeneralizedSigSoftmax", "OutputLayer", "PointwiseSoftmax", "SigSoftmax", "Softmax", "build_output_layer"]


def build_output_layer(config: OutputLayerConfig, vocabulary_size: int) -> OutputLayer:
    """The layer that `config` describes, with zero bias."""
    match config:
        case SoftmaxConfig():
            return Softmax(vocabulary_size)
        case SigSoftmaxConfig():
            return SigSoftmax(vocabulary_size)
        case GssConfig(c=c, k=k):
            return GeneralizedSigSoftmax(vocabulary_size, c=c, k=k)
