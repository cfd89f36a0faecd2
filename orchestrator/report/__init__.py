"""From numbers to pages, tables and figures."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
