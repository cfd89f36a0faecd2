"""Variants of a study: settings of `--set`, names of trials, and the user's inputs."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
