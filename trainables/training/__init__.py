"""Training: streams of tokens, recipes of both kinds of model, and a loop that can be stopped after
any step."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
