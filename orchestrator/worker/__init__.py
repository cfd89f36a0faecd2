"""Code of worker processes, and messages between worker and driver."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
