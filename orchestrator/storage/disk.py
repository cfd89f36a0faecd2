"""Check and create folders on this host's disk."""

from __future__ import annotations

import errno
import hashlib
import secrets
from pathlib import Path

from trainables.config import cache_home
from trainables.errors import UserError

DISK_TROUBLES = {
    errno.ENOSPC: "is full: free space there",
    errno.EDQUOT: "has no room left in your quota: free space there",
    errno.EFBIG: "refuses a file of this size: raise the limit of file sizes (ulimit -f)",
    errno.EROFS: "is read-only: make it writable",
    errno.EIO: "fails to read or write (Input/output error): repair it, or name a folder on "
    "another disk with --storage",
    errno.ESTALE: "is no longer mounted (Stale file handle): mount it again",
}


def check_folder(folder: Path) -> None:
    """Create the folder and test that it is writable. Raises UserError if it is not."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_probe(folder)
    except OSError as error:
        raise UserError(
            f"--storage: {folder} cannot be used as a folder for results ({error.strerror}). "
            "Name another folder or make this one writable."
        ) from error


def write_probe(folder: Path) -> None:
    """Write and remove a test file in the folder. Raises OSError if that fails."""
    probe = folder / f".writable-{secrets.token_hex(8)}"
    probe.write_bytes(b"x")
    probe.unlink()


def cache_folder(kind: str, url: str) -> Path:
    """Create and return this user's folder for local copies of a URL's objects.

    Raises UserError if the folder cannot be created.
    """
    folder = cache_home() / kind / hashlib.sha256(url.encode()).hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise UserError(
            f"{folder} cannot be created for local copies of {url} ({error.strerror}). Set "
            f"XDG_CACHE_HOME to a writable folder."
        ) from error
    return folder.resolve()
