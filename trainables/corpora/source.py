"""The verified texts of a corpus, and the SHA-256 that identifies them."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trainables.config import is_built_in, markov_rank
from trainables.corpora.folders import fetch_command, locate, missing_file
from trainables.corpora.published_corpora import PUBLISHED_CORPORA
from trainables.corpora.pydocs import split_texts
from trainables.corpora.text import SPLITS, tokenise
from trainables.errors import UserError


@dataclass(frozen=True, kw_only=True)
class Source:
    """The three texts of a corpus as read from disk (or made, for a built-in one)."""

    folder: Path | None
    """Where the files are; None for a built-in corpus."""
    texts: Mapping[str, str]
    """By split."""
    sizes_bytes: Mapping[str, int]
    """Size of each split in UTF-8."""
    digests: Mapping[str, str]
    """SHA-256 of each split, as 64 hexadecimal digits."""


def corpus_sha256(digests: Mapping[str, str]) -> str:
    """Return the identity of a corpus from the SHA-256 of its splits, so that published hashes are enough.

    It is the SHA-256 of the JSON object {"test.txt": ..., "train.txt": ..., "valid.txt": ...}, keys sorted, no white
    space.
    """
    by_file = {f"{split}.txt": digests[split] for split in SPLITS}
    return hashlib.sha256(json.dumps(by_file, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def read_source(name: str, *, data_dir: Path | None) -> Source:
    """Read and verify the three splits of the corpus `name`.

    Raises:
        UserError: Unknown corpus; a file missing, unreadable, empty, not UTF-8, or (of a published corpus) not the
            published one.
    """
    if is_built_in(name):
        folder, contents = None, {split: text.encode() for split, text in _built_in_texts(name).items()}
    else:
        folder = locate(name, data_dir)
        contents = {split: _read_file(name, data_dir, folder / f"{split}.txt") for split in SPLITS}
    digests = {split: hashlib.sha256(content).hexdigest() for split, content in contents.items()}
    if name in PUBLISHED_CORPORA:
        _verify(name, data_dir, locate(name, data_dir), digests)
    return Source(
        folder=folder,
        texts={split: _decode(name, split, content) for split, content in contents.items()},
        sizes_bytes={split: len(content) for split, content in contents.items()},
        digests=digests,
    )


def _built_in_texts(name: str) -> Mapping[str, str]:
    rank = markov_rank(name)
    if rank is None:
        return split_texts()
    # Imported late: it needs numpy, and a plan for any other corpus does not.
    from trainables.corpora.markov import markov_texts

    return markov_texts(rank)


def test_words(name: str, *, data_dir: Path | None) -> tuple[str, ...]:
    """The tokens of the test text of the corpus `name` as they are written, whatever a trial's vocabulary keeps.

    Raises UserError as `read_source` does. A process reads each text once.
    """
    return _test_words(name, data_dir and data_dir.resolve())


@functools.lru_cache(maxsize=2)
def _test_words(name: str, data_dir: Path | None) -> tuple[str, ...]:
    return tuple(tokenise(read_source(name, data_dir=data_dir).texts["test"]))


def _read_file(name: str, data_dir: Path | None, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise missing_file(name, data_dir, path) from error
    except OSError as error:
        raise UserError(f"a corpus needs readable files; {path} could not be read ({error.strerror})") from error


def _verify(name: str, data_dir: Path | None, folder: Path, digests: Mapping[str, str]) -> None:
    for split, file in PUBLISHED_CORPORA[name].files.items():
        if digests[split] != file.sha256:
            raise UserError(
                f"{folder / f'{split}.txt'} is not the published file of {name}: expected SHA-256 {file.sha256}, got "
                f"{digests[split]}: get it again with: {fetch_command(name, data_dir)} (or, if this is another corpus, "
                "rename its folder)"
            )


def _decode(name: str, split: str, content: bytes) -> str:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"the files of a corpus are UTF-8; {split}.txt of {name!r} has the byte 0x{content[error.start]:02x} at "
            f"offset {error.start}: convert the file to UTF-8"
        ) from error
    if not text.strip():
        raise UserError(
            f"every split of a corpus needs text; {split}.txt of {name!r} has none ({len(content)} bytes): "
            "add text to it, or choose another corpus"
        )
    return text
