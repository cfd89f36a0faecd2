"""Measurements by name and version: perplexity, spectra, ranks, top words, word similarity."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
