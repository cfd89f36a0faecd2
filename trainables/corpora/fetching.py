"""Getting the files of a known corpus onto this disk, and making sure that they are the right ones."""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from trainables.config.built_in_corpora import is_built_in, one_name
from trainables.corpora.download import Patience, RemoteFile, download
from trainables.corpora.folders import FILES, locate, names_in
from trainables.corpora.identity import CorpusIdentity, measured_identity, published_identity
from trainables.corpora.known import KNOWN, WORD_SIMILARITY
from trainables.corpora.source import read_source
from trainables.corpora.text import SPLITS
from trainables.errors import UserError

OnProgress = Callable[[str, int, int], None]
"""Called with a file's name, its bytes on disk so far, and its size in bytes."""


@dataclass(frozen=True, kw_only=True)
class CheckedFile:
    """One verified file of a corpus."""

    name: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class CorpusReport:
    """What `check` found; that it returned at all means that the corpus is in order."""

    identity: CorpusIdentity
    folder: Path | None
    """None for a built-in corpus."""
    files: tuple[CheckedFile, ...]


def check(name: str, *, data_dir: Path | None) -> CorpusReport:
    """Verify every file of the corpus `name` and report its sizes and hashes.

    Raises:
        UserError: Unknown corpus; a file missing, empty, not UTF-8, or of a wrong SHA-256.
    """
    source = read_source(name, data_dir=data_dir)
    known = KNOWN.get(name)
    return CorpusReport(
        identity=measured_identity(name, source) if known is None else published_identity(name, known),
        folder=source.folder,
        files=tuple(
            CheckedFile(name=f"{split}.txt", size_bytes=source.sizes_bytes[split], sha256=source.digests[split])
            for split in SPLITS
        ),
    )


def ensure(name: str, *, data_dir: Path | None, on_progress: OnProgress) -> CorpusReport:
    """Check the corpus `name`, downloading before that the files of a known corpus that are absent.

    Raises:
        UserError: As `fetch` and `check` do.
    """
    if name in KNOWN and not names_in(locate(name, data_dir)).issuperset(FILES):
        return fetch(name, data_dir=data_dir, on_progress=on_progress)
    return check(name, data_dir=data_dir)


def fetch(
    name: str,
    *,
    data_dir: Path | None,
    on_progress: OnProgress,
    base_url: str | None = None,
    patience: Patience | None = None,
) -> CorpusReport:
    """Download the files of the known corpus `name` that are absent or wrong to `data_dir`/`name`, and check them.

    A broken download is gone on with by the next call. Processes that fetch the same corpus at the same time take
    turns. `base_url` is a mirror with the same file names; None is the published place.

    Raises:
        UserError: Not a known corpus; the server or the network fails; the disk is full or cannot be written.
    """
    if is_built_in(name):
        raise UserError(f"{one_name(name)} is built in, with nothing to download: check it with corpus check instead")
    if name not in KNOWN:
        choices = f"{', '.join(KNOWN)} and {WORD_SIMILARITY}"
        raise UserError(f"only {choices} are downloaded; got {name!r}: check it with corpus check instead")
    known = KNOWN[name]
    files = {f"{split}.txt": (file.remote_name, file.size_bytes, file.sha256) for split, file in known.files.items()}
    place = known.base_url if base_url is None else base_url
    fetch_files(remote_files(place, files), locate(name, data_dir), on_progress=on_progress, patience=patience)
    return check(name, data_dir=data_dir)


def remote_files(place: str, files: Mapping[str, tuple[str, int, str]]) -> dict[str, RemoteFile]:
    """Files below the address `place`, by their names here; given as remote name, size in bytes and SHA-256."""
    base = place.rstrip("/") + "/"
    return {
        name: RemoteFile(url=base + remote_name, size_bytes=size_bytes, sha256=sha256)
        for name, (remote_name, size_bytes, sha256) in files.items()
    }


def fetch_files(
    files: Mapping[str, RemoteFile], folder: Path, *, on_progress: OnProgress, patience: Patience | None
) -> None:
    """Download to `folder`, under their names, those of the files that are absent or wrong; see `fetch`."""
    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with _lock(folder / ".fetch.lock"):
            for name, file in files.items():
                _fetch_file(file, folder / name, on_progress, patience or Patience())


def _fetch_file(file: RemoteFile, target: Path, on_progress: OnProgress, patience: Patience) -> None:
    if target.exists() and hashlib.sha256(target.read_bytes()).hexdigest() == file.sha256:
        on_progress(target.name, file.size_bytes, file.size_bytes)
        return
    download(
        file,
        target,
        on_bytes=lambda done: on_progress(target.name, done, file.size_bytes),
        patience=patience,
    )


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(
            f"a download needs a folder with free space that can be written; {folder} is not one ({error.strerror}): "
            "make room, or give another folder with --data-dir"
        ) from error


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on `path`; the kernel gives it back when the process dies."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
