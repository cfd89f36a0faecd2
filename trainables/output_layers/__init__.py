"""Output layers: from the last hidden states to log-probabilities and a training loss."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
