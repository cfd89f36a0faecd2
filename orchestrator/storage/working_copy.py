"""A trial's folder on a machine's disk, and the same folder in an object store.

The trial's files are brought here before it starts, what it writes is copied to the store while it
runs, and the end waits until all of it is there. The store has a fence of its own: an object that
the worker that began last has written, before it fetched anything. Before each copy a worker sees
that the fence has still its version. It goes on from what lies here, and may not have been copied,
only if it can replace the fence that this was fetched under."""

from __future__ import annotations

import secrets
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from orchestrator.storage.bucket import Bucket, BucketError, patiently
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
"""How often a running trial's folder is looked at for new files."""
VERSION = ".fence"
"""The file here with the version of the store's fence under which its neighbours were fetched and
written."""


class WorkingCopy:
    """The folder here of the trial whose objects have keys that begin with `key` and a slash."""

    def __init__(self, bucket: Bucket, key: str, folder: TrialFolder) -> None:
        self._bucket, self._key, self._folder = bucket, key, folder
        self._stored: dict[str, tuple[int, int] | None] = {}
        """What the store has of the folder: names, with the time and size of the file here of which
        it is a copy."""
        self._version: str | None = None
        """Of the fence that this worker has written."""

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Have the trial's newest files here, and in the store in the end. Raises BucketError and
        SupersededError."""
        patiently(self._begin)
        try:
            with self._pushed_again_and_again():
                yield
        except BaseException:
            with suppress(BucketError, SupersededError, OSError):
                self._push()
            raise
        patiently(self._push_last)
        patiently(lambda: self._bucket.remove([f"{self._key}/{FENCE}"]))
        shutil.rmtree(self._folder.path, ignore_errors=True)

    def _begin(self) -> None:
        """Go on from what is here if no other worker began since it was left and none of it was
        cleared away; else take over, and fetch."""
        path, names = self._folder.path, self._listed()
        if self._is_as_far_as(names) and self._take_over((path / VERSION).read_text()):
            # Those of the store that are gone here are removed by the next push.
            self._stored = dict.fromkeys(names)
        else:
            self._take_over()
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir()
            for name in self._listed():
                self._bucket.get(f"{self._key}/{name}", path / name)
            self._stored = dict(self._files())
        write_file(path / VERSION, str(self._version).encode())

    def _take_over(self, over: str | None = None) -> bool:
        """Write the fence anew; `over` a version of it, if that is the newest one."""
        token = secrets.token_hex(16).encode()
        self._version = self._bucket.write(f"{self._key}/{FENCE}", token, over=over)
        return self._version is not None

    def _is_as_far_as(self, names: set[str]) -> bool:
        """Return whether the folder here is as far as one with these files."""
        if not (self._folder.path / VERSION).exists():
            return False
        here = {file.name for file in self._folder.path.iterdir()}
        if self._folder.outcome() is None:
            here -= {RESULT}
        return progress(here) >= progress(names)

    def _listed(self) -> set[str]:
        """Return the names of the trial's files in the store."""
        return self._bucket.files(self._key).keys() - {FENCE}

    def _push(self) -> None:
        """Copy new and changed files, the result last, and remove from the store those that are
        gone here.

        Raises SupersededError, with nothing copied, if another worker has taken the trial over.
        """
        here = self._files()
        changed = [name for name in here if self._stored.get(name) != here[name]]
        # A folder without a state of the trial has been cleared by somebody else.
        gone = self._stored.keys() - here.keys() if any(progress(here)) else set()
        if changed or gone:
            self._check_fence()
        for name in sorted(changed, key=lambda name: (name == RESULT, name)):
            self._bucket.put(self._folder.path / name, f"{self._key}/{name}")
            self._stored[name] = here[name]
        self._bucket.remove(f"{self._key}/{name}" for name in gone)
        for name in gone:
            del self._stored[name]

    def _push_last(self) -> None:
        """Push, and remove the checkpoints that an older worker had under way when this one
        began."""
        for name in filter(is_checkpoint, self._listed()):
            self._stored.setdefault(name)
        self._push()
        self._check_fence()

    def _check_fence(self) -> None:
        if self._bucket.version(f"{self._key}/{FENCE}") != self._version:
            raise SupersededError(
                f"another worker has taken over the trial in {self._bucket.url}/{self._key}: let "
                "commands that share a --storage share a --store too"
            )

    def _files(self) -> dict[str, tuple[int, int]]:
        """Return the files in the folder with their times and sizes; not those of the machine, nor
        what is half written."""
        left_out = {LOCK, FENCE} if (self._folder.path / RESULT).exists() else {LOCK, FENCE, RESULT}
        files = {}
        for path in self._folder.path.iterdir():
            # A result that comes while this looks is left for the next look, with the files that it
            # speaks of.
            if path.name not in left_out and not path.name.startswith("."):
                with suppress(FileNotFoundError):
                    stat = path.stat()
                    files[path.name] = (stat.st_mtime_ns, stat.st_size)
        return files

    @contextmanager
    def _pushed_again_and_again(self) -> Iterator[None]:
        """A thread that copies what is new, for as long as this lasts. What fails is tried again at
        the next look."""
        over = threading.Event()

        def push() -> None:
            while not over.wait(LOOK_S):
                try:
                    self._push()
                except SupersededError:
                    # The trial stops at its next checkpoint; one that is not that far yet, after a
                    # later look.
                    self._folder.drop_fence()
                except (BucketError, OSError):
                    continue

        thread = threading.Thread(target=push, name="working copy", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
