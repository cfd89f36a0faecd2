"""What a plan must know of a corpus: its content hash and its sizes. Answers without torch, and but for generated
languages without numpy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trainables.corpora.published_corpora import PUBLISHED_CORPORA, PublishedCorpus
from trainables.corpora.source import Source, corpus_sha256, read_source
from trainables.corpora.text import SPLITS, number, tokenise


@dataclass(frozen=True, kw_only=True)
class CorpusIdentity:
    """A corpus' content and sizes. Tokens count one `<eos>` a line; the vocabulary includes `<eos>`."""

    name: str
    sha256: str
    """See `trainables.corpora.source.corpus_sha256`."""
    train_tokens: int
    valid_tokens: int
    test_tokens: int
    vocabulary_size: int

    def limited_vocabulary_size(self, limit: int | None) -> int:
        """Return the size of the vocabulary under `CorpusConfig.vocabulary_limit`: exactly what `load` will give."""
        return self.vocabulary_size if limit is None else min(limit, self.vocabulary_size)


NO_TEXT = CorpusIdentity(name="none", sha256="0" * 64, train_tokens=0, valid_tokens=0, test_tokens=0, vocabulary_size=0)
"""In place of a corpus, for studies whose trials read none."""


def identity(name: str, *, data_dir: Path | None) -> CorpusIdentity:
    """Return the identity of the corpus `name`.

    Published corpora are constants and need no data; built-in ones are made, folders of `data_dir` (default `data`)
    read.

    Raises:
        UserError: Unknown corpus, or a file that is missing, empty or not UTF-8.
    """
    if name in PUBLISHED_CORPORA:
        return published_identity(name, PUBLISHED_CORPORA[name])
    return measured_identity(name, read_source(name, data_dir=data_dir))


def published_identity(name: str, published: PublishedCorpus) -> CorpusIdentity:
    """Return the identity that a published corpus has by its published constants."""
    return CorpusIdentity(
        name=name,
        sha256=corpus_sha256({split: file.sha256 for split, file in published.files.items()}),
        train_tokens=published.files["train"].tokens,
        valid_tokens=published.files["valid"].tokens,
        test_tokens=published.files["test"].tokens,
        vocabulary_size=published.vocabulary_size,
    )


def measured_identity(name: str, source: Source) -> CorpusIdentity:
    """Return the identity that the texts themselves have."""
    splits = [tokenise(source.texts[split]) for split in SPLITS]
    train, valid, test = splits
    return CorpusIdentity(
        name=name,
        sha256=corpus_sha256(source.digests),
        train_tokens=len(train),
        valid_tokens=len(valid),
        test_tokens=len(test),
        vocabulary_size=len(number(splits, limit=None).types),
    )
