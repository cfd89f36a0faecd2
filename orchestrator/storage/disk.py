"""This machine's disk: whether it can be written to, and where copies of what lies in an object
store are kept."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
from pathlib import Path

from trainables.errors import UserError

DISK_TROUBLES = {
    errno.ENOSPC: "is full: free space there",
    errno.EDQUOT: "is full by your quota: free space there",
    errno.EFBIG: "takes no file so large: raise the limit of file sizes (ulimit -f)",
    errno.EROFS: "is read-only: make it writable",
    errno.EIO: "fails to read or write (Input/output error): repair it, or name a folder on "
    "another disk with --storage",
    errno.ESTALE: "was taken away (Stale file handle): mount it again",
}
"""What a failed write says about a disk: the trouble and the cure, by the error's number."""


def check_folder(folder: Path) -> None:
    """Make a folder if need be, and write to it. Raises UserError where that cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_probe(folder)
    except OSError as error:
        raise UserError(
            f"--storage: {folder} cannot be used as a folder for results ({error.strerror}). "
            "Name another folder or make this one writable."
        ) from error


def write_probe(folder: Path) -> None:
    """Write to a folder, and leave nothing behind. Raises OSError where that cannot be."""
    probe = folder / f".writable-{secrets.token_hex(8)}"
    probe.write_bytes(b"x")
    probe.unlink()


def copies_folder() -> Path:
    """Where all copies of this user's lie; it need not exist."""
    return (
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        / "softmax-bottleneck-sweeps"
    )


def cache_folder(kind: str, url: str) -> Path:
    """The folder of this user, made if need be, for copies of the objects at a URL. Raises
    UserError."""
    folder = copies_folder() / kind / hashlib.sha256(url.encode()).hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise UserError(
            f"what lies at {url} is copied to this machine while it is in use, and {folder} cannot "
            f"be made "
            f"({error.strerror}): name a folder that can be written to by the environment variable "
            f"XDG_CACHE_HOME"
        ) from error
    return folder.resolve()
