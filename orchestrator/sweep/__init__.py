"""One run of a study: what is missing, run it, recover what an earlier run left, report."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
