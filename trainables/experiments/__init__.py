"""Trials that train no language model: a module per kind, named like it.

Its `measure(config, runtime)` returns measurements by name and version.
"""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
