"""Text files that are sent to workers on other hosts."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from trainables.errors import UserError


@dataclass(frozen=True, kw_only=True)
class TextFile:
    """A UTF-8 file, on disk or generated."""

    name: str
    """File name, without the folder."""
    text: str

    @property
    def content(self) -> bytes:
        """Return the file's bytes."""
        return self.text.encode()

    @property
    def sha256(self) -> str:
        """Return the SHA-256 in hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()

    @classmethod
    def read(cls, path: Path, source: str) -> Self:
        """Read the file at `path`, which came from the option `source`.

        Raises UserError if the file is unreadable or not UTF-8.
        """
        try:
            return cls.of(path, path.read_bytes())
        except OSError as error:
            raise UserError(
                f"{source}: {path} cannot be read ({error.strerror}): check the path"
            ) from error

    @classmethod
    def of(cls, path: Path, content: bytes) -> Self:
        """Return a file with the name in `path` and this content.

        Raises UserError if the content is not UTF-8.
        """
        try:
            return cls(name=path.name, text=content.decode())
        except UnicodeDecodeError as error:
            raise UserError(
                f"{path} is not UTF-8, because of the byte 0x{content[error.start]:02x} at offset "
                f"{error.start}: convert it to UTF-8"
            ) from error
