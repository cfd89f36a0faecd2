"""Every config class: the complete description of a trial, and its identity."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
