"""The command line: commands, their options, and what they print."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
