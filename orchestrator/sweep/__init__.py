"""One run of a study: missing trials, recovery of earlier results, reports."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
