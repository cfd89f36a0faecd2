"""Language models: networks, output weights and initial weights."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
