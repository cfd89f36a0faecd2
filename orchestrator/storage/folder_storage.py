"""Trials and reports in a folder, which all machines of a cluster share."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from typing_extensions import override

from orchestrator.storage.storage import Storage, check_folder, write_probe


@dataclass(frozen=True)
class FolderStorage(Storage):
    """Everything is where it belongs as soon as it is written."""

    root: Path
    """Absolute."""

    @property
    @override
    def folder(self) -> Path:
        return self.root

    @override
    def __str__(self) -> str:
        return str(self.root)

    @override
    def check(self) -> None:
        check_folder(self.root)

    @override
    @contextmanager
    def marked(self) -> Iterator[str]:
        marker = self.root / f".seen-from-everywhere-{secrets.token_hex(8)}"
        marker.touch()
        try:
            yield marker.name
        finally:
            marker.unlink(missing_ok=True)

    @override
    def problem(self, marker: str) -> str | None:
        if not (self.root / marker).exists():
            return (
                f"{self} is not the same folder there: name one that all machines of the cluster share with --storage"
            )
        try:
            write_probe(self.root)
        except OSError as error:
            return f"{self} cannot be written to there ({error.strerror}): give the user whose Ray that is the right to"
        return None
