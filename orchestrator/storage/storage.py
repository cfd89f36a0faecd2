"""Where the trials and reports of a run lie: one interface, a folder or an object store behind
it."""

from __future__ import annotations

import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
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
    trial_directory,
    write_file,
)

STUDIES = "studies"
"""The folder of the files that say which trials a study has."""


class Storage(ABC):
    """A place for trials and reports, which prints as users know it; pickled, it is its address.

    What a trial has written is in the storage once `working` has been left, so a result is there
    before anyone is told of it. Who may work on a trial is decided by the lease in the results
    store; of two workers that both believe to, the fence in the trial's folder lets the later one
    write. Methods raise UserError where the place fails. Those that are not abstract suit a place
    where everything lies below `folder` from the start."""

    @property
    @abstractmethod
    def folder(self) -> Path:
        """Where this machine has the reports, and the results of trials that were brought here."""

    @property
    def work_folder(self) -> Path:
        """The folder of this machine below which trials write."""
        return self.folder

    def check(self) -> None:
        """Make the place if need be, and see that it can be used. Raises UserError where it
        cannot."""
        check_folder(self.folder)

    @abstractmethod
    def marked(self) -> AbstractContextManager[str]:
        """The name of something that lies at the root for so long, by which machines know the
        place."""

    @abstractmethod
    def problem(self, marker: str) -> str | None:
        """Why this machine does not see what another one has `marked`, or could not work there;
        None if it can."""

    def watched(self) -> AbstractContextManager[Callable[[], None]]:
        """Something to ask for so long, every few seconds: it raises UserError where the place is
        gone, another one or read-only. Where that shows by itself, it does nothing."""
        return nullcontext(lambda: None)

    def working(self, trial_id: str) -> AbstractContextManager[TrialFolder]:
        """The trial's folder on this machine, for as long as it is worked in; its files are in the
        storage in the end.

        Raises SupersededError at the end where another worker has taken the trial over.
        """
        return nullcontext(self.trial(trial_id))

    def trial(self, trial_id: str) -> TrialFolder:
        """What this machine has of the trial's results and measurements."""
        return TrialFolder(trial_directory(self.folder, trial_id), trial_id)

    def in_words_of_user(self, text: str, folder: TrialFolder) -> str:
        """What was said of a trial's folder here, with the address by which the user knows it."""
        return text.replace(str(folder.path), f"{self}/{trial_directory(Path(), folder.trial_id)}")

    def bring(self, trial_ids: Iterable[str], files: Iterable[str] = RESULT_FILES) -> None:  # noqa: B027
        """Have these files of the trials below `folder`, as far as there are any."""

    def set_aside_result(self, trial_id: str) -> None:
        """Rename a result that is of no use, or a worker would take the trial for finished."""
        self.trial(trial_id).set_aside_result()

    def forget(self, trial_id: str, *, checkpoints: bool) -> None:
        """Remove the trial's result, and its checkpoints too where it is to start anew."""
        self.trial(trial_id).forget_result()
        if checkpoints:
            self.trial(trial_id).forget_checkpoints()

    def trial_files(self) -> dict[str, list[str]]:
        """Return the names of the files that every trial has in the storage, by trial id."""
        return {
            folder.name: [path.name for path in folder.iterdir()]
            for folder in sorted((self.folder / TRIALS).glob("*/*"))
            if TRIAL_ID.fullmatch(folder.name) and folder.is_dir()
        }

    def write_study(self, name: str, content: bytes) -> None:
        """Write the file of a study, durably."""
        path = self.folder / STUDIES / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, content)

    def study_files(self) -> list[Path]:
        """Return the paths, on this machine, of the files of all studies."""
        return sorted((self.folder / STUDIES).glob("*.json"))

    def bring_reports(self, name: str) -> None:  # noqa: B027
        """Have the files `name` of all reports below `folder`."""

    def publish_report(self, page: Path, index: Path) -> str | None:
        """Put the report at `page` and the page over all reports where others see it; the address,
        if that is new."""
        del page, index
        return None


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
            # While it is open, no other folder gets its number.
            descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise self._changed(f"is gone ({error.strerror})") from error
        try:
            yield lambda: self._check_same(os.fstat(descriptor))
        finally:
            os.close(descriptor)

    def _check_same(self, before: os.stat_result) -> None:
        try:
            now, flags = self.root.stat(), os.statvfs(self.root).f_flag
        except OSError as error:
            raise self._changed(f"is gone ({error.strerror})") from error
        if not os.path.samestat(now, before):
            raise self._changed("was replaced by another one")
        if flags & os.ST_RDONLY or not os.access(self.root, os.W_OK | os.X_OK):
            raise self._changed("became read-only")

    def _changed(self, change: str) -> UserError:
        return UserError(
            f"The storage folder {self} {change}, and nothing is recorded since: put it back as it "
            "was, or name another one with --storage, and type the same command again."
        )

    @override
    @contextmanager
    def working(self, trial_id: str) -> Iterator[TrialFolder]:
        # Of a trial in a folder that is gone nothing can be said, also not that it failed.
        with self.watched() as check:
            yield self.trial(trial_id)
            check()

    @override
    def problem(self, marker: str) -> str | None:
        if not (self.root / marker).exists():
            return (
                f"{self} is not the same folder there: name one that all machines of the cluster "
                "share with --storage"
            )
        try:
            write_probe(self.root)
        except OSError as error:
            return (
                f"{self} cannot be written to there ({error.strerror}): give the user whose Ray "
                "that is the right to"
            )
        return None
