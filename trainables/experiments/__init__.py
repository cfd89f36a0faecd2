"""Trials that train no language model. Each kind of trial has a module with the kind's name.

A module's `measure(config, runtime)` returns measurements by name and version.
"""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
