"""Estimates of trials before they run: time, memory, disk, GPU hours."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
