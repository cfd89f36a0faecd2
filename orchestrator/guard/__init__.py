"""A small process around every command: it answers signals, ends what is left, and starts a crashed
sweep again."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
