"""Train and measure one trial, or measure its kept weights later."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
