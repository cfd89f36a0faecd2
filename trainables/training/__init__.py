"""Training: token streams, recipes of the model kinds, and a loop that can stop after any step."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
