"""Getting the files of a published corpus onto this disk, and making sure that they are the right ones."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trainables.config import is_built_in, one_name
from trainables.corpora.corpus_identity import CorpusIdentity, measured_identity, published_identity
from trainables.corpora.folders import FILES, locate, names_in
from trainables.corpora.published_corpora import PUBLISHED_CORPORA, WORD_SIMILARITY
from trainables.corpora.source import Source, read_source
from trainables.corpora.text import SPLITS
from trainables.errors import UserError, first_line

RETRIES = 3
"""How often a file is asked for again, after one second, two, three."""
PASSING = (408, 429)
"""The statuses from 400 to 499 that are worth asking again: too slow, too many requests."""


@dataclass(frozen=True, kw_only=True)
class CheckedFile:
    """One verified file of a corpus."""

    name: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class CorpusReport:
    """What `check` saw; that it returned at all means that the corpus is in order."""

    identity: CorpusIdentity
    folder: Path | None
    """None for a built-in corpus."""
    files: tuple[CheckedFile, ...]


def check(name: str, *, data_dir: Path | None) -> CorpusReport:
    """Verify every file of the corpus `name`, count its tokens and types, and report its sizes and hashes.

    Raises:
        UserError: Unknown corpus; a file missing, empty, not UTF-8, or of a wrong SHA-256; published counts that are
            not those of the texts.
    """
    source = read_source(name, data_dir=data_dir)
    counted = measured_identity(name, source)
    published = PUBLISHED_CORPORA.get(name)
    if published is not None and counted != (recorded := published_identity(name, published)):
        raise UserError(
            f"the counts of a published corpus are those of its texts; {name} has {_counts(counted)}, and "
            f"{_counts(recorded)} in trainables/corpora/published_corpora.py: correct them there"
        )
    return _report(counted, source)


def _counts(identity: CorpusIdentity) -> str:
    texts = f"{identity.train_tokens:,} train, {identity.valid_tokens:,} valid and {identity.test_tokens:,} test tokens"
    return f"{texts} of {identity.vocabulary_size:,} types"


def _report(identity: CorpusIdentity, source: Source) -> CorpusReport:
    return CorpusReport(
        identity=identity,
        folder=source.folder,
        files=tuple(
            CheckedFile(name=f"{split}.txt", size_bytes=source.sizes_bytes[split], sha256=source.digests[split])
            for split in SPLITS
        ),
    )


def ensure(name: str, *, data_dir: Path | None) -> CorpusReport:
    """Check the hashes of the corpus `name`, downloading before that the files of a published corpus that are absent.

    Raises:
        UserError: As `fetch` and `check` do.
    """
    if name in PUBLISHED_CORPORA and not names_in(locate(name, data_dir)).issuperset(FILES):
        return fetch(name, data_dir=data_dir)
    source, published = read_source(name, data_dir=data_dir), PUBLISHED_CORPORA.get(name)
    # The hashes say that the texts are the published ones; counting them again would only slow every run down.
    identity = measured_identity(name, source) if published is None else published_identity(name, published)
    return _report(identity, source)


def fetch(name: str, *, data_dir: Path | None) -> CorpusReport:
    """Download the files of the published corpus `name` that are absent or wrong to `data_dir`/`name`; check them.

    Raises:
        UserError: Not a published corpus; the server or the network fails; the disk is full or cannot be written.
    """
    if is_built_in(name):
        raise UserError(f"{one_name(name)} is built in, with nothing to download: check it with corpus check instead")
    if name not in PUBLISHED_CORPORA:
        choices = f"{', '.join(PUBLISHED_CORPORA)} and {WORD_SIMILARITY}"
        raise UserError(f"only {choices} are downloaded; got {name!r}: check it with corpus check instead")
    published = PUBLISHED_CORPORA[name]
    urls = {f"{split}.txt": published.base_url + file.remote_name for split, file in published.files.items()}
    hashes = {f"{split}.txt": file.sha256 for split, file in published.files.items()}
    download(urls, hashes, locate(name, data_dir))
    return check(name, data_dir=data_dir)


def download(urls: Mapping[str, str], hashes: Mapping[str, str], folder: Path) -> None:
    """Bring to `folder` those files that are absent or wrong, by their names there: their addresses and SHA-256.

    A file appears, or is replaced, in one step and only when its hash is right.

    Raises UserError where the server or the network keeps failing, serves another file, or the disk cannot be written.
    """
    try:
        import pooch
        import requests
    except ModuleNotFoundError as error:
        raise UserError(
            f"a download needs the package {error.name}, which is not installed here: install it, or put "
            f"{', '.join(urls)} into {folder} yourself"
        ) from error
    registry = {name: f"sha256:{digest}" for name, digest in hashes.items()}
    files = pooch.create(path=folder, base_url="", registry=registry, urls=dict(urls), retry_if_failed=RETRIES)
    for name, url in urls.items():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            files.fetch(name, downloader=_request)
        except requests.RequestException as error:
            raise UserError(
                f"downloading {url} failed {1 + RETRIES} times in a row ({_reason(error)}): type the same command "
                f"again later, or put the file at {folder / name} yourself"
            ) from error
        except OSError as error:
            if error.errno is None:  # not from the disk
                raise UserError(
                    f"downloading {url} failed ({_reason(error)}): look whether the address and this machine's network "
                    f"settings are right, or put the file at {folder / name} yourself"
                ) from error
            raise UserError(
                f"a download needs a folder with free space that can be written; {folder} is not one "
                f"({error.strerror or error}): make room, or give another folder with --data-dir"
            ) from error
        except ValueError as error:
            raise UserError(
                f"{url} does not serve the published file: {first_line(error)}; nothing was kept: try again later, or "
                f"put the right file at {folder / name} yourself"
            ) from error


def _request(url: str, file: str, _: object) -> None:
    """Write what the address serves to pooch's temporary file, with the permissions of a new file of this process.

    Raises OSError without a number where asking again is of no use: pooch repeats only errors of requests.
    """
    import pooch
    import requests

    try:
        pooch.HTTPDownloader()(url, file, None)
    except requests.HTTPError as error:
        if error.response is None or error.response.status_code >= 500 or error.response.status_code in PASSING:
            raise
        raise OSError(str(error)) from error
    mask = os.umask(0o077)
    os.umask(mask)
    Path(file).chmod(0o666 & ~mask)


def _reason(error: BaseException) -> str:
    """What went wrong with a request: the first cause, without what the libraries in between make of it."""
    from requests.exceptions import ChunkedEncodingError, ProxyError

    if isinstance(error, ChunkedEncodingError):
        return "the connection broke off"
    proxy = "the proxy of this machine's settings: " if isinstance(error, ProxyError) else ""
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return proxy + first_line(getattr(error, "strerror", None) or error)
