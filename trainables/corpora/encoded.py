"""Token ids of a corpus."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trainables.config import CorpusConfig
from trainables.corpora.folders import folder_in
from trainables.corpora.source import read_texts, texts_sha256
from trainables.corpora.text import SPLITS, Vocabulary, number_types, tokenise
from trainables.errors import UserError

TokenIds = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Corpus:
    """A corpus as token ids, with one `<eos>` per line.

    Each split is a one-dimensional, read-only int64 array. `vocabulary[i]` is the word with id i.
    """

    name: str
    train: TokenIds
    valid: TokenIds
    test: TokenIds
    vocabulary: tuple[str, ...]


def load(config: CorpusConfig, *, data_dir: Path | None) -> Corpus:
    """Return the corpus as token ids, verified and cached per process.

    Raises UserError if the SHA-256 differs from the config's, and as `read_texts` does.
    """
    return _load(config, folder_in(data_dir))


@functools.lru_cache(maxsize=4)
def _load(config: CorpusConfig, data_dir: Path) -> Corpus:
    texts = read_texts(config.name, data_dir=data_dir)
    digest = texts_sha256(texts)
    if digest != config.sha256:
        raise UserError(
            f"the corpus {config.name!r} has SHA-256 {digest}, but the plan has {config.sha256}. "
            "Use the same files, Python and program version on every worker, or plan again."
        )
    splits = [tokenise(texts[split].text) for split in SPLITS]
    vocabulary = number_types(splits, limit=config.vocabulary_limit)
    train, valid, test = (_encode(tokens, vocabulary) for tokens in splits)
    return Corpus(
        name=config.name, train=train, valid=valid, test=test, vocabulary=vocabulary.types
    )


def _encode(tokens: Sequence[str], vocabulary: Vocabulary) -> TokenIds:
    ids = np.fromiter(map(vocabulary.ids.__getitem__, tokens), dtype=np.int64, count=len(tokens))
    ids.setflags(write=False)  # the cache gives the same arrays to every trial of a pack
    return ids
