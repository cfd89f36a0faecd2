"""Corpora: text in, token ids out. Names, identities, download, verification and encoding.

`Corpus` and `load` need numpy and live in `trainables.corpora.encoded`; they are imported on first use, so that a plan,
which needs identities only, stays fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainables.corpora.corpus_identity import NO_TEXT, CorpusIdentity, identity
from trainables.corpora.fetching import CheckedFile, CorpusReport, check, ensure, fetch
from trainables.corpora.folders import locate, resolve_argument

if TYPE_CHECKING:
    from trainables.corpora.encoded import Corpus, load

__all__ = [
    "NO_TEXT",
    "CheckedFile",
    "Corpus",
    "CorpusIdentity",
    "CorpusReport",
    "check",
    "ensure",
    "fetch",
    "identity",
    "load",
    "locate",
    "resolve_argument",
]


def __getattr__(name: str) -> Any:
    if name in ("Corpus", "load"):
        from trainables.corpora import encoded

        return getattr(encoded, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
