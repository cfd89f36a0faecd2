"""A folder of an S3-compatible object store, by its URL. Objects are whole or absent: a PUT is
atomic.

Keys and endpoint come from where every AWS program takes them (AWS_ACCESS_KEY_ID and
AWS_SECRET_ACCESS_KEY, AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, ~/.aws); none of them is ever given
in a URL, kept or printed."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from orchestrator.guard import unwatched
from orchestrator.storage.disk import DISK_TROUBLES
from trainables.errors import UserError, first_line

SCHEME = "s3://"
URL = re.compile(r"s3://[a-z0-9][a-z0-9.-]+[a-z0-9](/[A-Za-z0-9!_.'()=+/-]*)?")
CONNECT_S, READ_S = 10, 30
"""Longest silences of the server, seconds."""
TRIES = 3
"""Of each request, a second or two apart."""
AWAY_S = 300.0
"""For so long a trial that starts or ends waits for a store that does not answer; then the sweep
stops."""
AGAIN_S = 2.0
T = TypeVar("T")


class BucketError(UserError):
    """The object store does not do what is asked of it."""


class UnreachableError(BucketError):
    """The store does not answer, or not sensibly: it may be back in a while."""


def patiently(action: Callable[[], T]) -> T:
    """Do it, and where the store is away again until it is back. Raises BucketError after
    `AWAY_S`."""
    deadline_s = time.monotonic() + AWAY_S
    with unwatched():
        while True:
            try:
                return action()
            except UnreachableError:
                if time.monotonic() >= deadline_s:
                    raise
            time.sleep(AGAIN_S)


def is_url(text: str) -> bool:
    """Whether what was typed for a folder is meant to be a URL."""
    return "://" in text


@dataclass(frozen=True)
class Bucket:
    """The objects below a URL; pickled, it is the URL alone."""

    url: str
    """s3://BUCKET or s3://BUCKET/PREFIX, without a slash at its end."""

    @classmethod
    def at(cls, text: str, option: str) -> Bucket:
        """The place that was typed after `option`. Raises UserError for anything but an S3 URL
        without credentials."""
        if not URL.fullmatch(text):
            # What was typed is repeated only up to where keys may stand.
            scheme = text.partition("://")[0]
            raise UserError(
                f"{option} takes a folder or {SCHEME}BUCKET/PREFIX, and this {scheme}:// URL is "
                f"neither: leave keys "
                "out of it (they come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or ~/.aws) "
                "and use letters, "
                "digits and !_.'()=+/-"
            )
        return cls(text.rstrip("/"))

    def check(self) -> None:
        """Write, list, read and delete. Raises BucketError for the first of them that cannot be."""
        probe = f".writable-{secrets.token_hex(8)}"
        self.write(probe, b"x")
        with self._trouble("listed"):
            _files().ls(self.url)
        if self.read([probe]) != {probe: b"x"}:
            raise BucketError(
                f"{self.url} does not give back what was just written to it: use another object "
                f"store"
            )
        self.remove([probe])

    def files(self, folder: str) -> dict[str, str]:
        """The objects below a folder: their paths from there, and marks that change with their
        contents."""
        path = self._path(folder)
        with self._trouble("listed"):
            listed: Mapping[str, Mapping[str, Any]] = _files().find(path, detail=True)
        start = len(path.removeprefix(SCHEME)) + 1
        # An object whose name is a folder's stands for that folder where it is empty. One that is
        # no path inside the folder here ("..", or a slash at its start) this program has not put
        # there.
        return {
            name[start:]: f"{info['ETag']} {info['size']}"
            for name, info in listed.items()
            if info["type"] == "file" and not {"", ".", ".."}.intersection(name.split("/"))
        }

    def read(self, keys: Iterable[str]) -> dict[str, bytes]:
        """The objects of these keys, several at a time; those that are absent are left out."""
        paths = {self._path(key): key for key in keys}
        if not paths:
            return {}
        with self._trouble("read"):
            answers: Mapping[str, Any] = _files().cat(list(paths), on_error="return")
            for answer in answers.values():
                if isinstance(answer, BaseException) and not isinstance(answer, FileNotFoundError):
                    raise answer
        return {
            paths[SCHEME + path.removeprefix(SCHEME)]: content
            for path, content in answers.items()
            if isinstance(content, bytes)
        }

    def get(self, key: str, path: Path) -> None:
        """Copy an object to a file, which is whole or not there. Raises UnreachableError if the
        object is gone."""
        # A name by which `remove_unfinished` knows it.
        part = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
        try:
            with self._trouble("read"):
                try:
                    _files().get_file(self._path(key), str(part))
                except FileNotFoundError as error:
                    raise UnreachableError(
                        f"{self._path(key)} was removed while it was read: type the same command "
                        f"again"
                    ) from error
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)

    def put(self, path: Path, key: str) -> None:
        """Copy a file to an object, which is there when this returns; nothing where the file has
        vanished."""
        with self._trouble("written to"):
            try:
                _files().put_file(str(path), self._path(key))
            except FileNotFoundError:
                if path.exists():
                    raise

    def put_many(self, files: Mapping[str, Path], folder: str) -> None:
        """Copy files to objects by their keys, all below `folder`, several at a time; those that
        are there already, as far as the store's marks tell, are left out."""
        held = {f"{folder}/{name}": mark for name, mark in self.files(folder).items()}
        changed = [
            key
            for key, path in sorted(files.items())
            if key not in held or held[key] != _mark(path)
        ]
        with self._trouble("written to"):
            if changed:
                _files().put(
                    [str(files[key]) for key in changed], [self._path(key) for key in changed]
                )

    def write(self, key: str, content: bytes) -> None:
        """Make an object."""
        with self._trouble("written to"):
            _files().pipe_file(self._path(key), content)

    def remove(self, keys: Iterable[str]) -> None:
        """Delete objects, of which any may be absent."""
        for key in keys:
            with self._trouble("deleted from"):
                _files().rm_file(self._path(key))

    def _path(self, key: str) -> str:
        return f"{self.url}/{key}"

    @property
    def _name(self) -> str:
        return self.url.removeprefix(SCHEME).partition("/")[0]

    @contextmanager
    def _trouble(self, doing: str) -> Iterator[None]:
        """Raises BucketError where the store or the way to it fails; a fault of this machine's disk
        is let through."""
        _files()  # says it in a sentence where the client is not installed
        from aiohttp import ClientError as HttpError
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError

        try:
            yield
        except (
            BotoCoreError,
            ClientError,
            HttpError,
            ResponseParserError,
            OSError,
            ValueError,
        ) as error:
            if isinstance(error, OSError) and (
                error.filename is not None or error.errno in DISK_TROUBLES
            ):
                raise
            raise self._explained(doing, error) from error

    def _explained(self, doing: str, error: Exception) -> BucketError:
        """Why, and what to do."""
        from botocore.exceptions import NoCredentialsError, PartialCredentialsError, ProfileNotFound

        trouble, keys = (
            f"{self.url} cannot be {doing}",
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or ~/.aws",
        )
        # Of an address only the server and the object: no user, and no query that nobody typed.
        reason = re.sub(r"\?[^\s\"]*", "", re.sub(r"://[^/@\s]*@", "://", first_line(error)))
        if isinstance(error, FileNotFoundError):
            return BucketError(
                f"{trouble}: there is no bucket {self._name}: create it, or name another one"
            )
        if isinstance(error, NoCredentialsError | PartialCredentialsError | ProfileNotFound):
            return BucketError(
                f"{trouble}: there are no credentials ({reason}): give them by {keys}, on every "
                f"machine"
            )
        if isinstance(error, PermissionError):
            return BucketError(
                f"{trouble}: the store refuses these credentials ({reason}): see {keys}, and what "
                f"their owner may do "
                f"in {self._name}"
            )
        if isinstance(error, ValueError):
            return BucketError(
                f"{trouble}: {reason}: AWS_ENDPOINT_URL takes an address such as "
                f"https://s3.example.org"
            )
        return UnreachableError(
            f"{trouble}: {reason}: see that the store runs and that AWS_ENDPOINT_URL is right, "
            f"then type the same "
            "command again"
        )


def _mark(path: Path) -> str:
    """What `Bucket.files` says of a file's content where the store takes MD5 for that, as most
    do."""
    content = path.read_bytes()
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}" {len(content)}'


@functools.cache
def _files() -> Any:
    """The client of this process."""
    import fsspec

    requests = {
        "connect_timeout": CONNECT_S,
        "read_timeout": READ_S,
        "retries": {"total_max_attempts": TRIES},
    }
    try:
        files = fsspec.filesystem(
            "s3", use_listings_cache=False, skip_instance_cache=True, config_kwargs=requests
        )
    except ImportError as error:
        raise UserError(
            f"a place {SCHEME}... needs the package s3fs: install it on every machine with pip "
            f"install '.[s3]'"
        ) from error
    files.retries = 2  # around those of the request itself
    return files
