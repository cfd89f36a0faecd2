"""Config classes of all kinds of trial."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
