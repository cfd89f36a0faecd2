"""One trial: trained and measured, or measured again on its kept weights."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
