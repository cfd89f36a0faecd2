"""Corpora: names, identities, download, verification and encoding.

`Corpus` and `load` need numpy, so they are imported on first use; a plan needs identities only.
"""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
