"""The trials of a study and their identities."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
