"""Atomic, checksummed files, and folders that one process at a time works in."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from trainables.errors import UserError

CANNOT_SYNC_FOLDERS = (errno.EINVAL, errno.EACCES)
"""Errors of fsync to ignore: the file system cannot sync folders, or the folder is write-only."""
Record = TypeVar("Record", bound=BaseModel)
SEAL = re.compile(rb'\{\n "sha256": "([0-9a-f]{64})",')


class DamagedFileError(Exception):
    """A file is not what its worker wrote."""


class UnreadableFileError(UserError):
    """This user may not read a file, or the disk fails: its content is unknown."""


def write_file(path: Path, *parts: bytes | memoryview, durable: bool = True) -> None:
    """Write a file atomically: at any time `path` holds either its old or its new content.

    If `durable`, the content is on disk on return. Processes may write one path at once: the last
    one wins. A killed process leaves a file `.NAME.PID-*.tmp`.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.writelines(parts)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    if durable:
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    # An fsync of a file does not cover its name in the folder.
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in CANNOT_SYNC_FOLDERS:
            raise


def open_file(path: Path) -> BufferedReader:
    """Open a file to read. Raises OSError, and DamagedFileError if it is not a regular file."""
    # A read from a pipe or a device may never end.
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # circular links, and a socket
            raise DamagedFileError(f"{path} is not a regular file") from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DamagedFileError(f"{path} is not a regular file")
    return os.fdopen(descriptor, "rb")


def append(path: Path, content: bytes) -> None:
    """Append to a file, creating it if missing. Raises OSError for a link or a non-regular file."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o666), "ab") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, f"{path} is not a regular file")
        file.write(content)


def read_file(path: Path) -> bytes:
    """Return the whole file. Raises the errors of `open_file`."""
    with open_file(path) as file:
        return file.read()


def unreadable_error(path: Path, error: OSError) -> UnreadableFileError:
    """Return the error for an unreadable file."""
    return UnreadableFileError(
        f"{path} cannot be read ({error.strerror}): give this user access, or check the disk"
    )


def set_aside(path: Path) -> Path:
    """Rename an unusable file to NAME.unusable, replacing an earlier one; return its new path."""
    unusable_path = path.with_name(f"{path.name}.unusable")
    try:
        return path.replace(unusable_path)
    except FileNotFoundError:
        return unusable_path
    except OSError:  # a folder cannot replace a file, nor a file a folder
        return path.replace(path.with_name(f"{unusable_path.name}-{secrets.token_hex(4)}"))


def remove(path: Path) -> None:
    """Remove a file, a folder with its content, or a link without its target."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def sha256(content: bytes) -> str:
    """Return the SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def sealed(text: str) -> bytes:
    """Return the indented JSON `text`, with its SHA-256 as a new first entry."""
    content = text.encode()
    return b'{\n "sha256": "%b",%b' % (sha256(content).encode(), content[1:])


def unsealed(path: Path) -> bytes:
    """Return the JSON that was `sealed` into a file.

    Raises OSError, and DamagedFileError if the file's bytes have changed.
    """
    content = read_file(path)
    seal = SEAL.match(content)
    text = b"{" + content[seal.end() :] if seal else content
    if seal is None or sha256(text) != seal[1].decode():
        raise DamagedFileError(f"{path} does not match its checksum")
    return text


def read_record(path: Path, kind: type[Record]) -> Record | None:
    """Return the object that was `sealed` into a file; None if the file does not exist.

    Raises DamagedFileError if the file is truncated or changed, UnreadableFileError if it cannot be
    read.
    """
    try:
        return kind.model_validate_json(unsealed(path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise unreadable_error(path, error) from error
    except ValidationError as error:
        raise DamagedFileError(f"{path} is not complete") from error


@contextmanager
def locked(directory: Path, *, wait: bool = True) -> Iterator[None]:
    """Lock a folder for this process; the kernel releases the lock when the process dies.

    Without `wait`, raises BlockingIOError if another process has the lock.
    """
    # The lock file is never written. The flags neither follow a link nor wait for a pipe in its
    # place.
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(directory / "lock", flags, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(descriptor)


def is_locked(directory: Path) -> bool:
    """Return whether another process on this host has locked the folder."""
    try:
        with open_file(directory / "lock") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
    except FileNotFoundError:
        return False
    except (OSError, DamagedFileError):  # not readable for this user, too
        return True
