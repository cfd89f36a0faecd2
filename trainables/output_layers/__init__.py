"""Output layers: from the hidden states of the last LSTM layer to log-probabilities, and to a training loss."""

from trainables.output_layers.base import LayerShape, OutputLayer, PointwiseSoftmax
from trainables.output_layers.building import build_output_layer
from trainables.output_layers.pointwise import Pointwise
