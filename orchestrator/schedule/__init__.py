"""Run trials in packs with Ray Tune: order, retries and outcomes."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
