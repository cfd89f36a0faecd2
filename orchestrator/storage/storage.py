"""Interface to the files of trials and reports, and its implementation for a folder."""

from __future__ import annotations

import os
import secrets
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from typing_extensions import override

from orchestrator.storage.disk import check_folder, write_probe
from trainables.errors import UserError
from trainables.trial_folder import (
    RESULT_FILES,
    TRIAL_ID,
    TRIALS,
    TrialFolder,
    remove,
    trial_directory,
    write_file,
)

STUDIES = "studies"


class Storage(ABC):
    """A folder or object store with the files of trials and reports.

    A trial's files are in the storage when `working` ends, before the worker reports the result. If
    two workers run one trial, a fence file in its folder lets only the later worker write. Methods
    raise UserError if the storage fails. Default methods suit a storage whose files are all below
    `folder`.
    """

    @property
    @abstractmethod
    def folder(self) -> Path:
        """Folder on this host that holds reports and results."""

    @property
    def work_folder(self) -> Path:
        """Folder on this host in which trials write their files."""
        return self.folder

    def check(self) -> None:
        """Create the storage if necessary. Raises UserError if it cannot be used."""
        check_folder(self.folder)

    @abstractmethod
    def marked(self) -> AbstractContextManager[str]:
        """Yield the name of a temporary file by which other hosts recognize this storage."""

    @abstractmethod
    def problem(self, marker: str) -> str | None:
        """Return why this host cannot find the file `marker` or use the storage, if it cannot."""

    def watched(self) -> AbstractContextManager[Callable[[], None]]:
        """Yield a function that checks the storage, to call every few seconds.

        The function raises UserError if the folder was removed, replaced or made read-only. For an
        object store, it does nothing.
        """
        return nullcontext(lambda: None)

    def working(self, trial_id: str) -> AbstractContextManager[TrialFolder]:
        """Yield the trial's folder on this host. On exit, its files are in the storage.

        Raises SupersededError if another worker has taken over the trial.
        """
        return nullcontext(self.trial(trial_id))

    def trial(self, trial_id: str) -> TrialFolder:
        """Return the trial's folder on this host."""
        return TrialFolder(trial_directory(self.folder, trial_id), trial_id)

    def in_words_of_user(self, text: str, folder: TrialFolder) -> str:
        """Return `text` with the trial's local path replaced by its path in the storage."""
        return text.replace(str(folder.path), f"{self}/{trial_directory(Path(), folder.trial_id)}")

    def bring(self, trial_ids: Iterable[str], files: Iterable[str] = RESULT_FILES) -> None:  # noqa: B027
        """Copy `files` of the trials from the storage to `folder`. Missing files are ignored."""

    def set_aside_result(self, trial_id: str) -> None:
        """Rename a trial's damaged result file, so that the trial does not look finished."""
        self.trial(trial_id).set_aside_result()

    def forget(self, trial_id: str, *, checkpoints: bool) -> None:
        """Remove the trial's result and, if `checkpoints`, its checkpoints."""
        self.trial(trial_id).forget_result()
        if checkpoints:
            self.trial(trial_id).forget_checkpoints()

    def remove(self, *paths: Path) -> None:
        """Remove files and folders, which are named by their paths below the storage."""
        for path in paths:
            remove(self.folder / path)

    def trial_files(self, trial_ids: Collection[str] | None = None) -> dict[str, dict[str, int]]:
        """Return the size in bytes of each trial's files, by trial id and path in its folder.

        Links are omitted. `trial_ids` may limit the trials.
        """
        paths = (
            sorted((self.folder / TRIALS).glob("*/*"))
            if trial_ids is None
            else [self.trial(trial_id).path for trial_id in trial_ids]
        )
        return {
            path.name: dict(_sizes(path))
            for path in paths
            if TRIAL_ID.fullmatch(path.name) and path.is_dir()
        }

    def write_study(self, name: str, content: bytes) -> None:
        """Write the file of a study's plan to the storage."""
        path = self.folder / STUDIES / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, content)

    def study_files(self) -> list[Path]:
        """Return the paths of all study files, sorted."""
        return sorted((self.folder / STUDIES).glob("*.json"))

    def bring_reports(self, name: str) -> None:  # noqa: B027
        """Copy the file `name` of each report to `folder`."""

    def publish_report(self, page: Path, index: Path) -> str | None:
        """Publish a report and the index of reports. Return the report's public address, if any."""
        del page, index
        return None


def _sizes(folder: Path) -> Iterator[tuple[str, int]]:
    for parent, _, names in os.walk(folder):
        for path in (Path(parent, name) for name in names):
            with suppress(FileNotFoundError):  # a worker may remove it
                status = path.lstat()
                if stat.S_ISREG(status.st_mode):
                    yield path.relative_to(folder).as_posix(), status.st_size


@dataclass(frozen=True)
class FolderStorage(Storage):
    """Storage in a folder, in which trials write directly."""

    root: Path

    @property
    @override
    def folder(self) -> Path:
        return self.root

    @override
    def __str__(self) -> str:
        return str(self.root)

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
    @contextmanager
    def watched(self) -> Iterator[Callable[[], None]]:
        try:
            # While the folder is open, no other folder gets its inode number.
            descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise self._change_error(f"is gone ({error.strerror})") from error
        try:
            yield lambda: self._check_same(os.fstat(descriptor))
        finally:
            os.close(descriptor)

    def _check_same(self, before: os.stat_result) -> None:
        try:
            now, flags = self.root.stat(), os.statvfs(self.root).f_flag
        except OSError as error:
            raise self._change_error(f"is gone ({error.strerror})") from error
        if not os.path.samestat(now, before):
            raise self._change_error("was replaced by another one")
        if flags & os.ST_RDONLY or not os.access(self.root, os.W_OK | os.X_OK):
            raise self._change_error("became read-only")

    def _change_error(self, change: str) -> UserError:
        return UserError(
            f"The storage folder {self} {change}, so no more results are recorded. Restore it, or "
            "name another one with --storage, and run the same command again."
        )

    @override
    @contextmanager
    def working(self, trial_id: str) -> Iterator[TrialFolder]:
        # If the folder is gone, nothing is known of the trial, not even that it failed.
        with self.watched() as check:
            yield self.trial(trial_id)
            check()

    @override
    def problem(self, marker: str) -> str | None:
        if not (self.root / marker).exists():
            return f"{self} is another folder on that machine. Name a shared folder with --storage"
        try:
            write_probe(self.root)
        except OSError as error:
            return (
                f"{self} cannot be written to on that machine ({error.strerror}). Make it writable "
                "for the user who runs Ray"
            )
        return None
