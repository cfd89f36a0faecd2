"""Language models: networks, their dropouts, their output weights and their initial weights."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
