"""The notebook interface: data frames of the store, sweeps, and trained models."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
