"""A file, as text, so that it reaches workers on other machines."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from trainables.errors import UserError


@dataclass(frozen=True, kw_only=True)
class TextFile:
    """A file in UTF-8, or one that was made."""

    name: str
    """Of the file, without its folder."""
    text: str

    @property
    def content(self) -> bytes:
        """The file's bytes."""
        return self.text.encode()

    @property
    def sha256(self) -> str:
        """Of the file, as 64 hexadecimal digits."""
        return hashlib.sha256(self.content).hexdigest()

    @classmethod
    def read(cls, path: Path, rule: str) -> Self:
        """The file at `path`; the rule starts the sentence about one that cannot be read: "--layers
        takes a file".

        Raises UserError where it cannot be read or is not UTF-8.
        """
        try:
            return cls.of(path, path.read_bytes())
        except OSError as error:
            raise UserError(
                f"{rule}, and {path} cannot be read ({error.strerror}): check the path"
            ) from error

    @classmethod
    def of(cls, path: Path, content: bytes) -> Self:
        """The file that was read from `path`. Raises UserError where it is not UTF-8."""
        try:
            return cls(name=path.name, text=content.decode())
        except UnicodeDecodeError as error:
            raise UserError(
                f"a text is UTF-8, and {path} has the byte 0x{content[error.start]:02x} at offset "
                f"{error.start}: convert the file to UTF-8"
            ) from error
