"""Variants of a study: settings given with `--set`, the names of trials, what a user brings."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
