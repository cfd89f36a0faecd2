"""Corpora: text in, token ids out. Names, identities, download, verification and encoding.

`Corpus` and `load` need numpy and live in `trainables.corpora.encoded`; they are imported on first
use, so that a plan, which needs identities only, stays fast."""

from trainables import door

__getattr__, __dir__ = door(__name__, __file__)
