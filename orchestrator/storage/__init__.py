"""Storage of trials and reports: a folder or an object store."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
