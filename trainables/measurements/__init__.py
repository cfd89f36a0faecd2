"""Measurements by name and version.

Shapes: N rows (contexts), V columns (vocabulary), n = min(N, V), C width of the context vectors, D
of the output weights, K mixtures, R directions.
"""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
