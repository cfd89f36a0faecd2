"""Trials and reports in an object store.

An object store has neither locks nor renames. A trial therefore runs in a local copy of its folder
(see the module `working_copy`).
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from typing_extensions import override

from orchestrator.storage.bucket import Bucket, BucketError, is_url
from orchestrator.storage.disk import cache_folder
from orchestrator.storage.storage import STUDIES, FolderStorage, Storage
from orchestrator.storage.working_copy import WorkingCopy
from trainables.errors import UserError
from trainables.trial_folder import (
    FENCE,
    RESULT,
    RESULT_FILES,
    TRIAL_ID,
    TRIALS,
    TrialFolder,
    is_checkpoint,
    locked,
    trial_directory,
    write_file,
)

# One listing is faster than more requests than this.
MANY = 100


@dataclass(frozen=True)
class ObjectStorage(Storage):
    """Storage in an object store, with the same relative paths as a `FolderStorage`."""

    bucket: Bucket

    @property
    @override
    def folder(self) -> Path:
        return cache_folder("results", self.bucket.url)

    @property
    @override
    def work_folder(self) -> Path:
        return cache_folder("scratch", self.bucket.url)

    @override
    def __str__(self) -> str:
        return self.bucket.url

    @override
    def check(self) -> None:
        super().check()
        self.bucket.check()

    @override
    @contextmanager
    def working(self, trial_id: str) -> Iterator[TrialFolder]:
        home = self.work_folder / trial_id
        home.mkdir(parents=True, exist_ok=True)
        with locked(home):
            folder = TrialFolder(home / "files", trial_id)
            with WorkingCopy(self.bucket, _key(trial_id), folder).synchronized():
                yield folder

    @override
    def bring(self, trial_ids: Iterable[str], files: Iterable[str] = RESULT_FILES) -> None:
        keys = [_key(*file) for file in itertools.product(trial_ids, files)]
        # Another command on this host may bring the same files. Under the lock, each writes what it
        # has read before the other reads.
        with locked(self.folder):
            listed_keys = (
                {f"{TRIALS}/{name}" for name in self.bucket.files(TRIALS)}
                if len(keys) > MANY
                else keys
            )
            present_keys = self._copy(key for key in keys if key in listed_keys)
            for key in set(keys).difference(present_keys):
                (self.folder / key).unlink(missing_ok=True)

    @override
    def set_aside_result(self, trial_id: str) -> None:
        folder = self.trial(trial_id)
        new_path = folder.set_aside_result()
        self.bucket.put(new_path, _key(trial_id, new_path.name))
        self.bucket.remove([_key(trial_id, RESULT)])

    @override
    def forget(self, trial_id: str, *, checkpoints: bool) -> None:
        super().forget(trial_id, checkpoints=checkpoints)
        names = self.bucket.files(_key(trial_id))
        # Without the fence, no worker resumes from files left on its host.
        old_names = [
            name
            for name in names
            if name == RESULT or (checkpoints and (name == FENCE or is_checkpoint(name)))
        ]
        self.bucket.remove(_key(trial_id, name) for name in old_names)

    @override
    def remove(self, *paths: Path) -> None:
        super().remove(*paths)
        for path in map(str, paths):
            self.bucket.remove([path, *(f"{path}/{name}" for name in self.bucket.files(path))])

    @override
    def trial_files(self, trial_ids: Collection[str] | None = None) -> dict[str, dict[str, int]]:
        sizes: dict[str, dict[str, int]] = {}
        for path, size in self.bucket.files(TRIALS).items():
            _, trial_id, name = (*path.split("/", 2), "", "")[:3]
            if TRIAL_ID.fullmatch(trial_id) and (trial_ids is None or trial_id in trial_ids):
                sizes.setdefault(trial_id, {})[name] = size
        return sizes

    @override
    def write_study(self, name: str, content: bytes) -> None:
        super().write_study(name, content)
        self.bucket.write(f"{STUDIES}/{name}", content)

    @override
    def study_files(self) -> list[Path]:
        keys = self._copy(f"{STUDIES}/{name}" for name in self.bucket.files(STUDIES))
        return [self.folder / key for key in sorted(keys)]

    @override
    def bring_reports(self, name: str) -> None:
        self._copy(
            f"reports/{file}" for file in self.bucket.files("reports") if file.endswith(f"/{name}")
        )

    def _copy(self, keys: Iterable[str]) -> list[str]:
        contents = self.bucket.read(keys)
        for key, content in contents.items():
            path = self.folder / key
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, content)
        return list(contents)

    @override
    def publish_report(self, page: Path, index: Path) -> str | None:
        paths = [path for path in page.parent.rglob("[!.]*") if path.is_file()]
        self.bucket.put_many(
            {path.relative_to(self.folder).as_posix(): path for path in [*paths, index]}
        )
        return f"{self.bucket.url}/{page.relative_to(self.folder)}"

    @override
    @contextmanager
    def marked(self) -> Iterator[str]:
        marker = f".seen-from-everywhere-{secrets.token_hex(8)}"
        self.bucket.write(marker, b"x")
        try:
            yield marker
        finally:
            with suppress(BucketError):
                self.bucket.remove([marker])

    @override
    def problem(self, marker: str) -> str | None:
        try:
            self.bucket.check()
            if self.bucket.read([marker]):
                return None
        except UserError as error:
            return str(error)
        return f"{self} is not the driver's object store. Compare AWS_ENDPOINT_URL on both hosts"


def storage_at(argument: str) -> Storage:
    """Return the storage for a folder's path or an object store's URL.

    Raises UserError for any other URL.
    """
    if is_url(argument):
        return ObjectStorage(Bucket.at(argument))
    return FolderStorage(Path(argument).resolve())


def _key(trial_id: str, name: str = "") -> str:
    return str(trial_directory(Path(), trial_id) / name)
