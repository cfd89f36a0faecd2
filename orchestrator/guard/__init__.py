"""A small parent process of every command: signals, cleanup and restarts."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
