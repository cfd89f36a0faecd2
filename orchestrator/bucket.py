"""A folder of an S3-compatible object store, by its URL. Objects are whole or absent: a PUT is atomic.

Keys and endpoint come from where every AWS program takes them (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY,
AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, ~/.aws); none of them is ever given in a URL, kept or printed.
"""

from __future__ import annotations

import functools
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.events import DISK_TROUBLES
from trainables.errors import UserError

SCHEME = "s3://"
URL = re.compile(r"s3://[a-z0-9][a-z0-9.-]+[a-z0-9](/[A-Za-z0-9!_.*'()=+/-]*)?")
CONNECT_S, READ_S = 10, 60
"""Longest silences of the server, seconds; the client tries five times."""


class BucketError(UserError):
    """The object store does not do what is asked of it."""


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
        """The place that was typed after `option`. Raises UserError for anything but an S3 URL without credentials."""
        if not URL.fullmatch(text):
            # What was typed is repeated only up to where keys may stand.
            scheme = text.partition("://")[0]
            raise UserError(
                f"{option} takes a folder or {SCHEME}BUCKET/PREFIX, and this {scheme}:// URL is neither: leave keys "
                "out of it (they come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or ~/.aws) and use letters, "
                "digits and !_.*'()=+/-"
            )
        return cls(text.rstrip("/"))

    def check(self) -> None:
        """List, write, read and delete. Raises BucketError for the first of them that cannot be."""
        bucket, _, prefix = self.url.removeprefix(SCHEME).partition("/")
        probe = f".writable-{secrets.token_hex(8)}"
        with self._trouble("listed"):
            _files().call_s3("list_objects_v2", Bucket=bucket, Prefix=prefix, MaxKeys=1)
        self.write(probe, b"x")
        if self.read([probe]) != {probe: b"x"}:
            raise BucketError(f"{self.url} does not give back what was just written to it: use another object store")
        with self._trouble("deleted from"):
            _files().rm_file(self._path(probe))

    def names(self, folder: str) -> dict[str, str]:
        """What lies directly in a folder: each object's name, and a mark that changes with its content."""
        with self._trouble("listed"):
            try:
                entries = _files().ls(self._path(folder), detail=True, refresh=True)
            except FileNotFoundError:
                return {}
        files = [entry for entry in entries if entry["type"] == "file"]
        return {entry["name"].rpartition("/")[2]: f"{entry['ETag']} {entry['size']}" for entry in files}

    def below(self, folder: str) -> list[str]:
        """The keys of all objects in a folder and its folders, from this bucket's own root."""
        root = self._path("").removeprefix(SCHEME)
        with self._trouble("listed"):
            try:
                return [path.removeprefix(root) for path in _files().find(self._path(folder), refresh=True)]
            except FileNotFoundError:
                return []

    def read(self, keys: Iterable[str]) -> dict[str, bytes]:
        """The objects of these keys, several at a time; those that are absent are left out."""
        paths = {self._path(key): key for key in keys}
        if not paths:
            return {}
        found = {}
        with self._trouble("read"):
            answers: Mapping[str, Any] = _files().cat(list(paths), on_error="return")
            for path, answer in answers.items():
                if isinstance(answer, FileNotFoundError):
                    continue
                if isinstance(answer, BaseException):
                    raise answer
                found[paths[SCHEME + path.removeprefix(SCHEME)]] = answer
        return found

    def get(self, key: str, path: Path) -> None:
        """Copy an object to a file, which is not whole before this returns."""
        with self._trouble("read"):
            _files().get_file(self._path(key), str(path))

    def put(self, path: Path, key: str) -> None:
        """Copy a file to an object, which is there when this returns; nothing where the file has vanished."""
        with self._trouble("written to"):
            try:
                _files().put_file(str(path), self._path(key))
            except FileNotFoundError:
                if path.exists():
                    raise

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

    @contextmanager
    def _trouble(self, doing: str) -> Iterator[None]:
        """Raises BucketError where the store or the way to it fails; a fault of this machine's disk is let through."""
        _files()  # says it in a sentence where the client is not installed
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except (BotoCoreError, ClientError, OSError) as error:
            if isinstance(error, OSError) and (error.filename is not None or error.errno in DISK_TROUBLES):
                raise
            raise BucketError(f"{self.url} cannot be {doing}: {_reason(error, self.url)}") from error


def _reason(error: Exception, url: str) -> str:
    """Why, and what to do."""
    from botocore.exceptions import NoCredentialsError, PartialCredentialsError

    keys = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or ~/.aws"
    bucket = url.removeprefix(SCHEME).partition("/")[0]
    if isinstance(error, FileNotFoundError):
        return f"there is no bucket {bucket}: create it, or name another one"
    if isinstance(error, NoCredentialsError | PartialCredentialsError):
        return f"there are no credentials: give them by {keys}, on every machine of a cluster"
    first = next(iter(str(error).strip().splitlines()), type(error).__name__).rstrip(".")
    # Of an address only the server and the object: no user, and no query that nobody typed.
    said = re.sub(r"\?[^\s\"]*", "", re.sub(r"://[^/@\s]*@", "://", first))
    if isinstance(error, PermissionError):
        return f"the store refuses these credentials ({said}): see {keys}, and what their owner may do in {bucket}"
    return f"{said}: see that the store runs and that AWS_ENDPOINT_URL is right, then type the same command again"


@functools.cache
def _files() -> Any:
    """The client of this process."""
    try:
        import s3fs
    except ImportError as error:
        raise UserError(
            f"a place {SCHEME}... needs the package s3fs: install it on every machine with pip install '.[s3]'"
        ) from error
    return s3fs.S3FileSystem(
        use_listings_cache=False,
        skip_instance_cache=True,
        config_kwargs={"connect_timeout": CONNECT_S, "read_timeout": READ_S},
    )
