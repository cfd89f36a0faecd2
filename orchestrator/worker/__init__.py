"""What runs on another machine, and the messages both ways."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
