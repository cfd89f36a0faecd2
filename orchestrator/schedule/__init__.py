"""Packs of trials: order, attempts, execution in Ray Tune, outcomes."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
