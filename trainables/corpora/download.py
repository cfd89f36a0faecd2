"""Download one file over HTTP: resumed, retried, verified, and put in place in one step."""

from __future__ import annotations

import hashlib
import http.client
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from trainables.errors import UserError

CHUNK_BYTES = 1 << 16
_TRANSIENT_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """A file to be had, and how to recognise it."""

    url: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long to bear with a bad connection."""

    attempts: int = 5
    """Give up after so many failures in a row without a new byte."""
    backoff_s: float = 1.0
    """Wait before the second attempt; doubled before each further one."""
    timeout_s: float = 30.0
    """Longest silence of the server."""


class _InterruptedDownloadError(Exception):
    """The connection failed in a way that another attempt may cure."""


def download(file: RemoteFile, target: Path, *, on_bytes: Callable[[int], None], patience: Patience) -> None:
    """Download `file` to `target` by way of `target`.part, going on from what an earlier download left there.

    `on_bytes` is called with the bytes on disk so far. `target` appears, or is replaced, only when size and SHA-256
    are right. The caller sees to it that no other process downloads the same file.

    Raises:
        UserError: The server does not have the file, serves other content, or keeps failing.
        OSError: The disk cannot be written.
    """
    part = target.with_name(target.name + ".part")
    resumed = _size(part) > 0
    _complete(file, part, on_bytes, patience)
    if resumed and _sha256(part) != file.sha256:
        part.unlink()  # what was there may have been of another file
        _complete(file, part, on_bytes, patience)
    got = _sha256(part)
    if got != file.sha256:
        part.unlink()
        raise UserError(
            f"{file.url} does not serve the published file: expected SHA-256 {file.sha256}, got {got}; nothing was "
            f"kept: try again later, or put the right file at {target} yourself"
        )
    part.replace(target)


def _complete(file: RemoteFile, part: Path, on_bytes: Callable[[int], None], patience: Patience) -> None:
    """Ask for the missing bytes until `part` has all of them."""
    failures, most = 0, _size(part)
    while True:
        try:
            _extend(file, part, on_bytes, patience.timeout_s)
            return
        except _InterruptedDownloadError as trouble:
            failures = 1 if _size(part) > most else failures + 1
            most = max(most, _size(part))
            if failures >= patience.attempts:
                raise UserError(
                    f"downloading {file.url} failed {failures} times in a row ({trouble}); {_size(part):,} of "
                    f"{file.size_bytes:,} bytes are kept: type the same command again to go on from there"
                ) from trouble
            time.sleep(patience.backoff_s * 2 ** (failures - 1))


def _extend(file: RemoteFile, part: Path, on_bytes: Callable[[int], None], timeout_s: float) -> None:
    """Make one request for what `part` lacks, and append it."""
    if _size(part) > file.size_bytes:
        part.unlink()
    done = _size(part)
    on_bytes(done)
    if done == file.size_bytes and part.exists():
        return
    with closing(_connect(file, part, done, timeout_s)) as response:
        done = _first_byte(response, part, done)
        _check_size(file, response, done)
        with part.open("ab" if done else "wb") as output:
            for chunk in _chunks(response, file.size_bytes - done):
                output.write(chunk)
                done += len(chunk)
                on_bytes(done)
            output.flush()
            os.fsync(output.fileno())
    if done < file.size_bytes:
        raise _InterruptedDownloadError(f"the connection ended after {done:,} of {file.size_bytes:,} bytes")


def _connect(file: RemoteFile, part: Path, offset: int, timeout_s: float) -> http.client.HTTPResponse:
    headers = {"User-Agent": "trainables-corpora"} | ({"Range": f"bytes={offset}-"} if offset else {})
    try:
        response = urllib.request.urlopen(urllib.request.Request(file.url, headers=headers), timeout=timeout_s)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and offset:
            part.unlink()
            raise _InterruptedDownloadError("the server cannot go on from an earlier download") from error
        if error.code in _TRANSIENT_STATUS:
            raise _InterruptedDownloadError(f"the server answered {error.code} {error.reason}") from error
        raise UserError(
            f"the server answered {error.code} {error.reason} for {file.url}: look whether the address is right, or "
            "put the file in the data folder yourself"
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise _InterruptedDownloadError(str(error) or type(error).__name__) from error
    if not isinstance(response, http.client.HTTPResponse):
        raise UserError(f"corpora are downloaded over http or https; {file.url} is neither: give another base URL")
    return response


def _first_byte(response: http.client.HTTPResponse, part: Path, offset: int) -> int:
    """Return where in the file the answer starts: at `offset` as asked, or at 0 where the server ignores ranges."""
    if response.status != http.HTTPStatus.PARTIAL_CONTENT:
        return 0
    given = response.headers.get("Content-Range", "")
    if not given.startswith(f"bytes {offset}-"):
        part.unlink()
        raise _InterruptedDownloadError(f"asked for the bytes from {offset:,}, the server answered with {given!r}")
    return offset


def _check_size(file: RemoteFile, response: http.client.HTTPResponse, offset: int) -> None:
    """Refuse at once a file whose announced size is not the published one: no retry will cure it."""
    if response.length is not None and offset + response.length != file.size_bytes:
        raise UserError(
            f"{file.url} does not serve the published file: expected {file.size_bytes:,} bytes, the server announces "
            f"{offset + response.length:,}: try again later, or put the right file in the data folder yourself"
        )


def _chunks(response: http.client.HTTPResponse, at_most: int) -> Iterator[bytes]:
    """Yield the body, `at_most` bytes of it, keeping trouble with the network apart from trouble with the disk."""
    while at_most > 0:
        try:
            chunk = response.read(min(CHUNK_BYTES, at_most))
        except (OSError, http.client.HTTPException) as error:
            raise _InterruptedDownloadError(str(error) or type(error).__name__) from error
        if not chunk:
            return
        at_most -= len(chunk)
        yield chunk


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _sha256(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
