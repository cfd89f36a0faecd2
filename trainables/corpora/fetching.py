"""Download and verification of published files."""

from __future__ import annotations

import os
from pathlib import Path

from trainables.config import is_built_in
from trainables.corpora.folders import folder_in, names_in
from trainables.corpora.published import (
    PUBLISHED,
    PUBLISHED_CORPORA,
    WORD_SIMILARITY,
    PublishedFolder,
)
from trainables.corpora.source import read_files, read_texts
from trainables.errors import UserError, first_line

RETRIES = 3
"""Retries per file, after 1, 2 and 3 seconds."""


def ensure(name: str, *, data_dir: Path | None) -> None:
    """Download missing files of the corpus or benchmarks `name`, if published; verify all files.

    Raises UserError as `download` and `read_texts` do.
    """
    if is_built_in(name):
        return
    if name not in PUBLISHED:
        read_texts(name, data_dir=data_dir)
        return
    files = PUBLISHED[name].files
    if not names_in(folder_in(data_dir, name)).issuperset(files):
        download(PUBLISHED[name], folder_in(data_dir, name))
    # Matching hashes suffice; counting tokens again would only slow every run.
    read_files(name, files, data_dir=data_dir)


def fetch(name: str, *, data_dir: Path | None) -> None:
    """Download the missing or wrong published files of `name` to `data_dir`/`name`.

    Raises UserError for an unpublished name, and as `download` does.
    """
    if name not in PUBLISHED:
        choices = f"{', '.join(PUBLISHED_CORPORA)} and {WORD_SIMILARITY}"
        raise UserError(
            f"only {choices} can be downloaded, not {name!r}. Check its files with "
            f"`corpus check {name}`."
        )
    download(PUBLISHED[name], folder_in(data_dir, name))


def download(publication: PublishedFolder, folder: Path) -> None:
    """Download the missing or wrong published files to `folder`, each atomically.

    Raises UserError if a download keeps failing, a file's hash is wrong, or the disk cannot be
    written.
    """
    try:
        import pooch
        import requests
    except ModuleNotFoundError as error:
        raise UserError(
            f"downloads need the package {error.name}. Install it, or put "
            f"{', '.join(publication.files)} into {folder} yourself."
        ) from error
    registry = {name: f"sha256:{digest}" for name, digest in publication.files.items()}
    files = pooch.Pooch(
        path=folder, base_url=publication.url, registry=registry, retry_if_failed=RETRIES
    )
    for name in publication.files:
        url = files.get_url(name)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            files.fetch(name, downloader=_request)
        except requests.RequestException as error:
            raise UserError(
                f"download of {url} failed {1 + RETRIES} times in a row ({_reason(error)}). Run "
                f"the same command again later, or put the file at {folder / name} yourself."
            ) from error
        except ValueError as error:
            raise UserError(
                f"{url} does not serve the published file ({first_line(error)}). Try again later, "
                f"or put the right file at {folder / name} yourself."
            ) from error
        except OSError as error:
            raise UserError(
                f"download of {url} to {folder} failed ({_reason(error)}). Check the address, the "
                "network settings and the free space, or choose another --data-dir."
            ) from error


def _request(url: str, file: str, _: object) -> None:
    # pooch's temporary files are readable by their owner only.
    import pooch

    pooch.HTTPDownloader()(url, file, None)
    mask = os.umask(0o077)
    os.umask(mask)
    Path(file).chmod(0o666 & ~mask)


def _reason(error: BaseException) -> str:
    while cause := error.__cause__ or error.__context__:
        error = cause
    return first_line(getattr(error, "strerror", None) or error)
