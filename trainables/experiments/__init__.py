"""Trials that train no language model.

Each kind has a module of its name here, whose `measure(config, runtime)` gives its measurements by
name and version."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
