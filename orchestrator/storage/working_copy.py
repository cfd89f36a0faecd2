"""A trial's folder on a machine's disk, and the same folder in an object store.

The trial's files are brought here before it starts, what it writes is copied to the store while it runs, and the end
waits until all of it is there. What a machine could not copy stays on its disk, and the trial goes on from there if it
runs on that machine again. The fence of the folder here is kept in the store, too: of two workers the later one may
write there.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from orchestrator.storage.bucket import Bucket, BucketError, patiently
from trainables.trial_folder import FENCE, LOCK, RESTART, RESULT, SupersededError, TrialFolder, is_checkpoint, progress

LOOK_S = 2.0
"""How often a running trial's folder is looked at for new files."""


class WorkingCopy:
    """The folder here of the trial whose objects have keys that begin with `key` and a slash."""

    def __init__(self, bucket: Bucket, key: str, folder: TrialFolder) -> None:
        self._bucket, self._key, self._folder = bucket, key, folder
        self._stored: dict[str, tuple[int, int] | None] = {}
        """What the store has of the folder: names, with the time and size of the file here of which it is a copy."""
        self._fence: bytes | None = None
        """The token by which the store knows this worker."""

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Have the trial's newest files here, and in the store in the end. Raises BucketError and SupersededError."""
        patiently(self._fetch)
        try:
            with self._pushed_again_and_again():
                yield
        except BaseException:
            with suppress(BucketError, SupersededError, OSError):
                self._push()
            raise
        patiently(self._push)
        shutil.rmtree(self._folder.path, ignore_errors=True)

    def _fetch(self) -> None:
        """Bring the trial's files, unless those that a killed worker left here are further on than the store's."""
        names = self._bucket.files(self._key).keys() - {FENCE}
        if self._is_ahead(names):
            # Those of the store that are gone here are removed by the next push.
            self._stored = dict.fromkeys(names)
            return
        path = self._folder.path
        if path.exists():
            shutil.rmtree(path)
        path.mkdir()
        # Its state last: a folder that has the newest state has all of it.
        for name in sorted(names, key=lambda name: (name == RESULT, is_checkpoint(name), name)):
            part = path / f".{name}.part"
            self._bucket.get(f"{self._key}/{name}", part)
            os.replace(part, path / name)
        self._stored = dict(self._files())

    def _is_ahead(self, names: set[str]) -> bool:
        """Whether the trial has come further here than in the store, since it was last to start anew."""
        path, restart = self._folder.path, f"{self._key}/{RESTART}"
        here = {file.name for file in path.iterdir()} if path.exists() else set()
        if self._folder.outcome() is None:
            here -= {RESULT}
        if progress(here) <= progress(names):
            return False
        return self._bucket.read([restart]).get(restart) == self._folder.restart()

    def _push(self) -> None:
        """Copy new and changed files, the result last, and remove from the store those that are gone here.

        Raises SupersededError, with nothing copied, where another worker has taken the trial over.
        """
        here = self._files()
        changed = [name for name in here if self._stored.get(name) != here[name]]
        # A folder without a state of the trial has been cleared by somebody else.
        gone = self._stored.keys() - here.keys() if any(progress(here)[:2]) else set()
        token = self._folder.fence()
        if token not in (None, self._fence):
            self._bucket.write(f"{self._key}/{FENCE}", token)
            self._fence = token
        elif changed or gone:
            self._check_fence()
        for name in sorted(changed, key=lambda name: (name == RESULT, name)):
            self._bucket.put(self._folder.path / name, f"{self._key}/{name}")
            self._stored[name] = here[name]
        for name in gone:
            self._bucket.remove([f"{self._key}/{name}"])
            del self._stored[name]
        if token is None and self._fence is not None:
            self._bucket.remove([f"{self._key}/{FENCE}"])
            self._fence = None

    def _check_fence(self) -> None:
        key = f"{self._key}/{FENCE}"
        if self._fence is not None and self._bucket.read([key]).get(key) != self._fence:
            raise SupersededError(
                f"another worker has taken over the trial in {self._bucket.url}/{self._key}: let commands that share a "
                "--storage share a --store too"
            )

    def _files(self) -> dict[str, tuple[int, int]]:
        """The files in the folder with their times and sizes; not those of the machine, nor what is half written."""
        left_out = {LOCK, FENCE} if (self._folder.path / RESULT).exists() else {LOCK, FENCE, RESULT}
        files = {}
        for path in self._folder.path.iterdir():
            # A result that comes while this looks is left for the next look, with the files that it speaks of.
            if path.name not in left_out and not path.name.startswith("."):
                with suppress(FileNotFoundError):
                    stat = path.stat()
                    files[path.name] = (stat.st_mtime_ns, stat.st_size)
        return files

    @contextmanager
    def _pushed_again_and_again(self) -> Iterator[None]:
        """A thread that copies what is new, for as long as this lasts. What fails is tried again at the next look."""
        over = threading.Event()

        def push() -> None:
            while not over.wait(LOOK_S):
                try:
                    self._push()
                except SupersededError:
                    # The trial stops at its next checkpoint.
                    self._folder.drop_fence()
                    return
                except (BucketError, OSError):
                    continue

        thread = threading.Thread(target=push, name="working copy", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
