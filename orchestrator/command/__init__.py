"""What is typed and answered: the only room that knows the command line."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
