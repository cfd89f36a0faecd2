"""Reports: pages, tables and figures made from numbers."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
