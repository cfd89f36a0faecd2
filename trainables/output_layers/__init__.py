"""Output layers: from the hidden states of the last LSTM layer to log-probabilities, and to a
training loss."""

from trainables.output_layers.base import LayerShape, OutputLayer, PointwiseSoftmax
from trainables.output_layers.building import build_output_layer
from trainables.output_layers.cross_entropy import cross_entropies
from trainables.output_layers.custom import load_layers
from trainables.output_layers.fused import Inputs, kernels_fit
from trainables.output_layers.gss import SmoothBend
from trainables.output_layers.mixtures import Mixture, MixtureOfContexts, MixtureOfSoftmaxes
from trainables.output_layers.plif import START, PiecewiseLinear
from trainables.output_layers.pointwise import Identity, Pointwise
from trainables.output_layers.softcap import Softcap
