"""Measurements by name and version: perplexity, spectra and ranks, likeliest words, word similarity."""
