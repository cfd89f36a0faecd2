"""Read and write objects in an object store (S3, Google Cloud Storage, Azure).

A PUT is atomic, so an object is either whole or missing. Access keys and endpoint come from the
provider's usual sources (for S3: AWS_* variables, ~/.aws, an instance's role). They are never
stored or printed.
"""

from __future__ import annotations

import functools
import mimetypes
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from trainables.errors import UserError, first_line
from trainables.trial_folder import write_file

URL = re.compile(r"(s3|gs|az)://[a-z0-9][a-z0-9.-]+[a-z0-9](/[A-Za-z0-9!_.'()=+/-]*)?")
ADDRESS = re.compile(r"https?://[^\s/]+(/\S*)?")
CLIENT = {"connect_timeout": "10s", "timeout": "60s", "allow_http": True}
RETRIES = {"max_retries": 2, "retry_timeout": timedelta(seconds=30)}
AT_A_TIME = 8
AWAY_S = 300.0
"""Seconds to wait for an unreachable object store before the sweep stops."""
AGAIN_S = 2.0
T = TypeVar("T")


class BucketError(UserError):
    """A request to the object store failed, or the store cannot be used."""


class UnreachableError(BucketError):
    """The object store gave no usable answer; a later request may succeed."""


def patiently(action: Callable[[], T]) -> T:
    """Run `action`, again if the object store is unreachable, and return its result.

    Raises BucketError after `AWAY_S` seconds.
    """
    deadline_s = time.monotonic() + AWAY_S
    while True:
        try:
            return action()
        except UnreachableError:
            if time.monotonic() >= deadline_s:
                raise
        time.sleep(AGAIN_S)


def is_url(text: str) -> bool:
    """Return whether the text is a URL."""
    return "://" in text


@dataclass(frozen=True)
class Bucket:
    """The objects below one URL of an object store."""

    url: str
    """s3://BUCKET or s3://BUCKET/PREFIX, without a final slash."""

    @classmethod
    def at(cls, text: str) -> Bucket:
        """Return the bucket for a --storage argument.

        Raises UserError unless the argument is an object store's URL without credentials.
        """
        if not URL.fullmatch(text):
            # Repeat only the scheme: the rest may hold keys.
            raise UserError(
                f"--storage: this {text.partition('://')[0]}:// URL is invalid. Use s3://, gs:// "
                "or az://BUCKET/PREFIX with letters, digits and !_.'()=+/-. Keys come from the "
                "environment or ~/.aws."
            )
        return cls(text.rstrip("/"))

    def check(self) -> None:
        """Write, list, read and delete an object as a test. Raises BucketError on failure."""
        probe = f".writable-{secrets.token_hex(8)}"
        self.write(probe, b"x")
        self.files(probe)
        self.read([probe])
        self.remove([probe])

    def files(self, folder: str) -> dict[str, int]:
        """Return the size in bytes of each object below `folder`, by its path there."""
        with self._trouble("listed") as client:
            objects = [item for page in client.list(folder) for item in page]
        return {item["path"].removeprefix(f"{folder}/"): item["size"] for item in objects}

    def read(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Return the contents of objects by key. Missing objects are omitted."""

        def content(key: str) -> bytes | None:
            with self._trouble("read") as client, suppress(FileNotFoundError):
                return bytes(client.get(key).bytes())
            return None

        keys = list(keys)
        with ThreadPoolExecutor(AT_A_TIME) as threads:
            contents = zip(keys, threads.map(content, keys), strict=True)
        return {key: content for key, content in contents if content is not None}

    def get(self, key: str, path: Path) -> None:
        """Download an object to a file atomically.

        Raises UnreachableError if the object is missing.
        """
        with self._trouble("read") as client:
            content = bytes(client.get(key).bytes())
        write_file(path, content)

    def put(self, path: Path, key: str) -> None:
        """Upload a file. Do nothing if the file no longer exists."""
        kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        try:
            file = path.open("rb")
        except FileNotFoundError:
            return
        with file, self._trouble("written to") as client:
            client.put(key, file, attributes={"Content-Type": kind})

    def put_many(self, files: Mapping[str, Path]) -> None:
        """Upload files in parallel. `files` maps keys of objects to paths."""
        with ThreadPoolExecutor(AT_A_TIME) as threads:
            list(threads.map(self.put, files.values(), files))

    def write(self, key: str, content: bytes, *, expected_version: str | None = None) -> str | None:
        """Write an object and return its version.

        With `expected_version`, writes only if the stored object has this version, and otherwise
        returns None.
        """
        mode = "overwrite" if expected_version is None else {"e_tag": expected_version}
        with self._trouble("written to") as client:
            from obstore.exceptions import PreconditionError

            with suppress(PreconditionError):
                return str(client.put(key, content, mode=mode)["e_tag"])
        return None

    def version(self, key: str) -> str | None:
        """Return the version of an object, or None if the object does not exist."""
        with self._trouble("read") as client, suppress(FileNotFoundError):
            return str(client.head(key)["e_tag"])
        return None

    def remove(self, keys: Iterable[str]) -> None:
        """Delete objects. Missing objects are ignored."""
        with self._trouble("deleted from") as client:
            client.delete(list(keys))

    @contextmanager
    def _trouble(self, doing: str) -> Iterator[Any]:
        client = _client(self.url)
        from obstore.exceptions import BaseError

        try:
            yield client
        except (BaseError, OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno is not None:  # of the local disk
                raise
            raise self._bucket_error(doing, error) from error

    def _bucket_error(self, doing: str, error: Exception) -> BucketError:
        from obstore.exceptions import PermissionDeniedError, UnauthenticatedError

        trouble, name = f"{self.url} cannot be {doing}", self.url.split("/")[2]
        # Remove the query of an address: the user did not type it.
        reason = re.sub(r"\?[^\s\"]*", "", first_line(error))
        if "NoSuchBucket" in str(error):
            return BucketError(f"{trouble}: no such bucket: {name}. Create it, or name another one")
        if isinstance(error, PermissionDeniedError | UnauthenticatedError):
            return BucketError(
                f"{trouble}: the store refuses these credentials ({reason}). Check them, and their "
                f"rights in {name}"
            )
        return UnreachableError(
            f"{trouble}: {reason}. Check that the store runs and that AWS_ENDPOINT_URL is right, "
            "then run the same command again"
        )


@functools.cache
def _client(url: str) -> Any:
    try:
        from obstore.auth.boto3 import Boto3CredentialProvider
        from obstore.store import from_url
    except ImportError as error:
        raise UserError(
            f"{url} needs the packages obstore and boto3. Install them on every machine: "
            "pip install '.[s3]'"
        ) from error
    if not url.startswith("s3://"):
        return from_url(url, client_options=CLIENT, retry_config=RETRIES)  # type: ignore[call-overload]
    from botocore.exceptions import BotoCoreError

    address = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if address and not ADDRESS.fullmatch(address):
        raise BucketError("AWS_ENDPOINT_URL: must be an address such as https://s3.example.org")
    try:
        keys = Boto3CredentialProvider()
    except (BotoCoreError, ValueError) as error:
        raise BucketError(
            f"{url} cannot be used: no credentials ({first_line(error)}). Set AWS_ACCESS_KEY_ID "
            "and AWS_SECRET_ACCESS_KEY, or ~/.aws, on every machine"
        ) from error
    return from_url(url, credential_provider=keys, client_options=CLIENT, retry_config=RETRIES)  # type: ignore[call-overload]
