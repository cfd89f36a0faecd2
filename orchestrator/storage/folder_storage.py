"""Trials and reports in a folder, which all machines of a cluster share."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from typing_extensions import override

from orchestrator.storage.storage import Storage, check_folder
from trainables.trial_folder.folder import TrialFolder, trial_directory


@dataclass(frozen=True)
class FolderStorage(Storage):
    """Everything is where it belongs as soon as it is written."""

    root: Path
    """Absolute."""

    @property
    @override
    def folder(self) -> Path:
        return self.root

    @property
    @override
    def work_folder(self) -> Path:
        return self.root

    @override
    def __str__(self) -> str:
        return str(self.root)

    @override
    def address(self, trial_id: str) -> str:
        return str(trial_directory(self.root, trial_id))

    @override
    def check(self) -> None:
        check_folder(self.root)

    @override
    @contextmanager
    def working(self, trial_id: str) -> Iterator[TrialFolder]:
        yield self.trial(trial_id)

    @override
    def bring_results(self, trial_ids: Iterable[str]) -> None:
        pass

    @override
    def bring_measurements(self, trial_ids: Iterable[str], names: Iterable[str]) -> None:
        pass

    @override
    def bring_reports(self, name: str) -> None:
        pass

    @override
    def publish_report(self, page: Path, index: Path) -> str | None:
        return None

    @override
    def put_marker(self, name: str) -> None:
        (self.root / name).touch()

    @override
    def remove_marker(self, name: str) -> None:
        (self.root / name).unlink(missing_ok=True)

    @override
    def problem(self, marker: str) -> str | None:
        if not (self.root / marker).exists():
            return (
                f"{self} is not the same folder there: name one that all machines of the cluster share with --storage"
            )
        probe = self.root / f"{marker}-{socket.gethostname()}-{os.getpid()}"
        try:
            probe.touch()
            probe.unlink()
        except OSError as error:
            return f"{self} cannot be written to there ({error.strerror}): give the user whose Ray that is the right to"
        return None
