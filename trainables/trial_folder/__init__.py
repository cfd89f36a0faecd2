"""A trial's files: written completely or not at all, by one worker at a time."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
