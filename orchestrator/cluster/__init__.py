"""Ray and its machines: started, joined, asked whether they can run the trials."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
