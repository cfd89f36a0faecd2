"""Files that are written whole or not at all and read back as they were written, and folders that
one process at a time works in."""

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
"""What a file system answers that has no way to sync a folder, and a folder that may be written to
but not listed."""
Record = TypeVar("Record", bound=BaseModel)
SEAL = re.compile(rb'\{\n "sha256": "([0-9a-f]{64})",')


class DamagedFileError(Exception):
    """A file cannot be what its worker wrote; the text says which and why."""


class UnreadableFileError(UserError):
    """This user may not read a file, or the disk does not give it: nothing is known of its
    content."""


def write_file(path: Path, *parts: bytes | memoryview, durable: bool = True) -> None:
    """Write a file so that, whatever happens, `path` holds either its old or its new content; the
    new one is on disk when this returns. Not `durable`, for what can be made again, it need not
    outlive the machine's end.

    Processes and threads may write the same path at the same time: the last one has the last word,
    and none fails. A process that is killed in between leaves its unfinished `.NAME.PID-*.tmp`."""
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
    """Put the names in a folder on disk: a file's own sync does not cover what it is called."""
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
    """Open to read. Raises OSError, and DamagedFileError for what is no file: one may wait for ever
    on a pipe, and a device may never end."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # links in a circle, and a socket
            raise DamagedFileError(f"{path} is no file") from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DamagedFileError(f"{path} is no file")
    return os.fdopen(descriptor, "rb")


def append(path: Path, content: bytes) -> None:
    """Add to the end of a file, which is made where it is missing. Raises OSError for what is a
    link or no file."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o666)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, f"{path} is no file")
        os.write(descriptor, content)
    finally:
        os.close(descriptor)


def read_file(path: Path) -> bytes:
    """The whole file. Raises as `open_file` does."""
    with open_file(path) as file:
        return file.read()


def unreadable(path: Path, error: OSError) -> UnreadableFileError:
    """What to say of such a file."""
    return UnreadableFileError(
        f"{path} cannot be read ({error.strerror}): give this user access to it, or see to the disk"
    )


def set_aside(path: Path) -> Path:
    """Rename what is of no use to NAME.unusable, over an earlier one; returns its new path. Another
    process may have done so meanwhile."""
    aside = path.with_name(f"{path.name}.unusable")
    try:
        return path.replace(aside)
    except FileNotFoundError:
        return aside
    except OSError:  # a folder makes way for no file, nor a file for a folder
        return path.replace(path.with_name(f"{aside.name}-{secrets.token_hex(4)}"))


def remove(path: Path) -> None:
    """Remove a file, or a folder with all that is in it; what a link points to stays."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def sha256(content: bytes) -> str:
    """As 64 hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def sealed(text: str) -> bytes:
    """An object as indented JSON, with the SHA-256 of that text as a new first entry."""
    content = text.encode()
    return b'{\n "sha256": "%b",%b' % (sha256(content).encode(), content[1:])


def unsealed(path: Path) -> bytes:
    """The JSON that was `sealed` into a file. Raises OSError, and DamagedFileError if its bytes
    have changed."""
    content = read_file(path)
    seal = SEAL.match(content)
    text = b"{" + content[seal.end() :] if seal else content
    if seal is None or sha256(text) != seal[1].decode():
        raise DamagedFileError(f"{path} is not what was written, by its checksum")
    return text


def read_record(path: Path, kind: type[Record]) -> Record | None:
    """The object that was `sealed` into a file, None if there is no file.

    Raises DamagedFileError for a file that is truncated or changed, UnreadableFileError if this
    user may not read it or the disk fails."""
    try:
        return kind.model_validate_json(unsealed(path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise unreadable(path, error) from error
    except ValidationError as error:
        raise DamagedFileError(f"{path} is not complete") from error


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Have a folder to oneself; the kernel gives the lock back when the process dies."""
    # Nothing is written to it, and neither a link nor a pipe in its place is followed or waited
    # for.
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(directory / "lock", flags, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
