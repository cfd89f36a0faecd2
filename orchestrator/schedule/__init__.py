"""Packs of trials: their order, attempts, execution in Ray Tune, and outcomes."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
