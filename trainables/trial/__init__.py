"""One trial: trained and measured, or measured again on the weights that it kept."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
