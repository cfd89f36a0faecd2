"""Output layers: from the hidden states of the last LSTM layer to log-probabilities, and to a
training loss."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
