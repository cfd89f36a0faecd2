"""Corpora: names, identities, download, verification and encoding.

A plan needs identities only; `Corpus` and `load` need numpy.
"""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
