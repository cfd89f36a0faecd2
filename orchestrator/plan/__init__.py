"""Which trials a study has, and their identity."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
