"""Measurements by name and version.

Shapes: N rows (contexts), V columns (vocabulary), n = min(N, V), C width of context vectors, D
width of output weights, K mixtures, R directions.
"""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
