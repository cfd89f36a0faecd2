"""Copy a trial's folder from an object store to this host, and back.

A worker fetches the files before the trial starts, and copies changes to the store until the trial
ends. It first writes a fence object. Before each copy, it checks that no other worker has replaced
the fence. After a crash, the next worker uses local files only if the fence was not replaced
since they were fetched.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from orchestrator.storage.bucket import Bucket, BucketError, patiently
from trainables.pulse import repeated
from trainables.trial_folder import (
    FENCE,
    LOCK,
    RESULT,
    SupersededError,
    TrialFolder,
    is_checkpoint,
    progress,
    write_file,
)

LOOK_S = 2.0
# This local file contains the version of the fence object under which the folder was fetched.
VERSION = ".fence"


class WorkingCopy:
    """Local copy of a trial's folder in an object store."""

    def __init__(self, bucket: Bucket, key: str, folder: TrialFolder) -> None:
        self._bucket, self._key, self._folder = bucket, key, folder
        # Time and size of each file in the store when it was copied, by path in the folder.
        self._stored: dict[str, tuple[int, int] | None] = {}
        self._version: str | None = None

    @contextmanager
    def synchronized(self) -> Iterator[None]:
        """Fetch the trial's files on entry; copy changes to the store until exit.

        Raises BucketError, or SupersededError if another worker has taken over the trial.
        """
        patiently(self._begin)
        try:
            with repeated(self._push_in_background, LOOK_S):
                yield
        except BaseException:
            with suppress(BucketError, SupersededError, OSError):
                self._push()
            raise
        patiently(self._push_last)
        patiently(lambda: self._bucket.remove([f"{self._key}/{FENCE}"]))
        shutil.rmtree(self._folder.path, ignore_errors=True)

    def _begin(self) -> None:
        path, names = self._folder.path, self._stored_names()
        # Resume from local files if they are the newest and no other worker has begun since.
        if self._is_up_to_date(names) and self._take_over((path / VERSION).read_text()):
            # The next push removes stored files that have no local file.
            self._stored = dict.fromkeys(names)
        else:
            self._take_over()
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir()
            for name in self._stored_names():
                (path / name).parent.mkdir(parents=True, exist_ok=True)
                self._bucket.get(f"{self._key}/{name}", path / name)
            self._stored = dict(self._files())
        write_file(path / VERSION, str(self._version).encode())

    def _take_over(self, expected_version: str | None = None) -> bool:
        token = secrets.token_hex(16).encode()
        self._version = self._bucket.write(
            f"{self._key}/{FENCE}", token, expected_version=expected_version
        )
        return self._version is not None

    def _is_up_to_date(self, names: set[str]) -> bool:
        if not (self._folder.path / VERSION).exists():
            return False
        local_names = {file.name for file in self._folder.path.iterdir()}
        if self._folder.outcome() is None:
            local_names -= {RESULT}
        return progress(local_names) >= progress(names)

    def _stored_names(self) -> set[str]:
        return self._bucket.files(self._key).keys() - {FENCE}

    def _push(self) -> None:
        local_files = self._files()
        changed_names = [
            name for name in local_files if self._stored.get(name) != local_files[name]
        ]
        # A folder without any state of the trial was cleared by another process.
        removed_names = (
            self._stored.keys() - local_files.keys() if any(progress(local_files)) else set()
        )
        if changed_names or removed_names:
            self._check_fence()
        # A checkpoint comes after the files that belong to it. The result comes last, because it
        # makes the trial look finished.
        for name in sorted(changed_names, key=lambda name: (name == RESULT, is_checkpoint(name))):
            self._bucket.put(self._folder.path / name, f"{self._key}/{name}")
            self._stored[name] = local_files[name]
        self._bucket.remove(f"{self._key}/{name}" for name in removed_names)
        for name in removed_names:
            del self._stored[name]

    def _push_last(self) -> None:
        # Also remove checkpoints that an older worker copied after this worker began.
        for name in filter(is_checkpoint, self._stored_names()):
            self._stored.setdefault(name)
        self._push()
        self._check_fence()

    def _check_fence(self) -> None:
        if self._bucket.version(f"{self._key}/{FENCE}") != self._version:
            raise SupersededError(
                f"another worker has taken over the trial in {self._bucket.url}/{self._key}. "
                "Commands that share a --storage must share a --store, too"
            )

    def _files(self) -> dict[str, tuple[int, int]]:
        excluded_names = (
            {LOCK, FENCE} if (self._folder.path / RESULT).exists() else {LOCK, FENCE, RESULT}
        )
        files = {}
        for path in self._folder.path.rglob("*"):
            name = path.relative_to(self._folder.path).as_posix()
            # A result that appears during the loop is copied in the next round, with the files that
            # it refers to.
            if name not in excluded_names and not name.startswith(".") and path.is_file():
                with suppress(FileNotFoundError):
                    stat = path.stat()
                    files[name] = (stat.st_mtime_ns, stat.st_size)
        return files

    def _push_in_background(self) -> None:
        with suppress(BucketError, OSError):
            try:
                self._push()
            except SupersededError:
                # The trial stops at its next checkpoint. If it has no fence yet, a later round
                # drops the fence.
                self._folder.fence.drop()
