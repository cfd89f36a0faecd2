"""Measurements by name and version: perplexity, spectra and ranks, likeliest words, word
similarity."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
