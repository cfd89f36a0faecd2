"""Read or generate the texts of a corpus, verify them and count their tokens."""

from __future__ import annotations

import functools
import hashlib
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

from trainables.config import TextFile, is_built_in, markov_rank, spam_symbols
from trainables.corpora.folders import FILES, folder_in, locate
from trainables.corpora.published import (
    PUBLISHED,
    PUBLISHED_CORPORA,
    CorpusIdentity,
    corpus_sha256,
)
from trainables.corpora.pydocs import split_texts
from trainables.corpora.spam import spam_identity, spam_texts
from trainables.corpora.text import SPLITS, number_types, tokenise
from trainables.errors import PROGRAM, UserError, first_line
from trainables.trial_folder import DamagedFileError, read_file


def identity(name: str, *, data_dir: Path | None) -> CorpusIdentity:
    """Return the SHA-256 and sizes of a corpus, without importing torch.

    They are constants for published corpora, and for languages that built-in studies generate.
    Otherwise the texts are read (see `read_texts`). Only generated languages need numpy.
    """
    if is_built_in(name):
        return _built_in_identity(name)
    return PUBLISHED_CORPORA.get(name) or compute_identity(
        name, read_texts(name, data_dir=data_dir)
    )


@functools.cache
def _built_in_identity(name: str) -> CorpusIdentity:
    symbols = spam_symbols(name)
    constant = None if symbols is None else spam_identity(symbols)
    return constant or compute_identity(name, read_texts(name, data_dir=None))


def check(name: str, *, data_dir: Path | None) -> tuple[CorpusIdentity, tuple[TextFile, ...]]:
    """Verify a corpus and count its tokens and types. Raises UserError as `read_texts` does."""
    texts = read_texts(name, data_dir=data_dir)
    return compute_identity(name, texts), tuple(texts.values())


def compute_identity(name: str, texts: Mapping[str, TextFile]) -> CorpusIdentity:
    """Return the SHA-256 and sizes of a corpus, computed from its texts."""
    splits = [tokenise(texts[split].text) for split in SPLITS]
    train, valid, test = map(len, splits)
    vocabulary_size = len(number_types(splits, limit=None).types)
    return CorpusIdentity(name, texts_sha256(texts), train, valid, test, vocabulary_size)


def texts_sha256(texts: Mapping[str, TextFile]) -> str:
    """Return the SHA-256 that identifies a corpus (see `corpus_sha256`)."""
    return corpus_sha256({text.name: text.sha256 for text in texts.values()})


def read_texts(name: str, *, data_dir: Path | None) -> dict[str, TextFile]:
    """Return a corpus' verified texts by split, generated or from `data_dir` (default `data`).

    Raises UserError if the corpus is unknown, a text is empty, and as `read_files` does.
    """
    if is_built_in(name):
        texts = _built_in_texts(name)
        return {split: TextFile(name=f"{split}.txt", text=texts[split]) for split in SPLITS}
    locate(name, data_dir)
    files = read_files(name, FILES, data_dir=data_dir)
    for file in files:
        if not file.text.strip():
            raise UserError(
                f"{file.name} of the corpus {name!r} has no text ({len(file.content)} bytes). Add "
                "text, or choose another corpus."
            )
    return dict(zip(SPLITS, files, strict=True))


def _built_in_texts(name: str) -> Mapping[str, str]:
    rank, symbols = markov_rank(name), spam_symbols(name)
    if symbols is not None:
        return spam_texts(symbols)
    if rank is None:
        return split_texts()
    # Imported late: it needs numpy, unlike a plan for any other corpus.
    from trainables.corpora.markov import markov_texts

    return markov_texts(rank)


def test_words(name: str, *, data_dir: Path | None) -> tuple[str, ...]:
    """Return the tokens of the test text; no rare word is replaced by `<unk>`.

    Raises UserError as `read_texts` does.
    """
    return tuple(tokenise(read_texts(name, data_dir=data_dir)["test"].text))


def read_files(name: str, files: Iterable[str], *, data_dir: Path | None) -> list[TextFile]:
    """Return files of the folder `name` in `data_dir`, verified if published.

    Raises UserError if a file is missing, unreadable, not UTF-8, or differs from the published one.
    """
    digests = PUBLISHED[name].files if name in PUBLISHED else {}
    option = "" if data_dir is None else f" --data-dir {shlex.quote(str(data_dir))}"
    command = f"Get it with: {PROGRAM} corpus fetch {name}{option}"
    texts = []
    for path in (folder_in(data_dir, name) / file for file in files):
        try:
            content = read_file(path)
        except FileNotFoundError as error:
            requirement = ", ".join(FILES) if path.name in FILES else f"{len(digests)} benchmarks"
            fix = command if path.name in digests else "Add the file, or choose another corpus."
            raise UserError(
                f"{name!r} needs {requirement}, but {path} is missing. {fix}"
            ) from error
        except (OSError, DamagedFileError) as error:
            raise UserError(
                f"{path} cannot be read ({first_line(error)}). Check the file."
            ) from error
        digest = hashlib.sha256(content).hexdigest()
        expected_digest = digests.get(path.name, digest)
        if digest != expected_digest:
            raise UserError(
                f"{path} is not the published file of {name}: SHA-256 {digest} instead of "
                f"{expected_digest}. If the folder is another corpus, rename it. {command}"
            )
        texts.append(TextFile.of(path, content))
    return texts
