"""Packs of trials, their order, attempts, and what becomes of a pack."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
