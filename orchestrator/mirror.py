"""Trials and reports in an object store, by way of this machine's disk.

A trial works in a folder of its machine, with the locks and renames that an object store has not. A `Mirror` brings
the trial's files there before it starts, copies what it writes to the store while it runs, and returns only when all
of it is there; so a result is in the store before anyone is told of it. What a machine could not copy stays on its
disk, and the trial goes on from there if it runs on that machine again.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from orchestrator.bucket import Bucket, BucketError
from orchestrator.cache import cache_folder
from trainables.files import write_file
from trainables.result_files import locked, read_outcome
from trainables.runtime import trial_directory

LOOK_S = 2.0
"""How often a running trial's folder is looked at for new files."""
RESULT = "result.json"
RESULT_FILES = (RESULT, "spectrum.npy")
OWNER = "owner"
"""The object that names the worker whose files a trial takes: the one that started last."""
MANY = 100
"""Of so many trials, listing the store tells sooner than asking for each file which there are."""


class TakenOverError(BucketError):
    """Another worker has started the same trial since."""


@dataclass(frozen=True)
class Mirror:
    """A storage that is a URL; the same paths below it as below a folder."""

    bucket: Bucket

    def __str__(self) -> str:
        return self.bucket.url

    @property
    def folder(self) -> Path:
        """This machine's copy of the results and reports."""
        return cache_folder("results", self.bucket.url)

    def address(self, trial_id: str) -> str:
        """Of the trial's folder."""
        return f"{self.bucket.url}/{_key(trial_id)}"

    def fetch(self, trial_ids: Iterable[str], names: Iterable[str] = RESULT_FILES) -> None:
        """Bring these files of the trials to `folder`; what is not in the store is not there either."""
        wanted = [(trial_id, name) for trial_id in trial_ids for name in names]
        if len(wanted) > MANY:
            known = set(self.bucket.below("trials"))
            there = [each for each in wanted if _key(*each) in known]
        else:
            there = wanted
        contents = self.bucket.read(_key(*each) for each in there)
        for trial_id, name in wanted:
            path = trial_directory(self.folder, trial_id) / name
            content = contents.get(_key(trial_id, name))
            if content is None:
                path.unlink(missing_ok=True)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_file(path, content)

    def set_aside(self, trial_id: str) -> None:
        """Rename the trial's result as `orchestrator.record` does with one that is of no use."""
        kept = trial_directory(self.folder, trial_id) / "result.unusable.json"
        self.bucket.put(kept, _key(trial_id, kept.name))
        self.bucket.remove([_key(trial_id, RESULT)])

    def forget(self, trial_id: str, *, checkpoints: bool) -> None:
        """Remove the trial's result, and its checkpoints too where it is to start anew."""
        names = self.bucket.names(_key(trial_id))
        old = [name for name in names if name == RESULT or (checkpoints and name.startswith("checkpoint-"))]
        self.bucket.remove(_key(trial_id, name) for name in old)
        shutil.rmtree(self._scratch(trial_id), ignore_errors=True)

    @contextmanager
    def working(self, trial_id: str, *, owned: bool = True) -> Iterator[Path]:
        """The trial's folder on this machine, for as long as it is worked in; its files are in the store in the end.

        Only one process of a machine works in it: a second one waits. With `owned`, a worker elsewhere that has the
        same trial loses it to this one. Raises BucketError where the store fails at the start or the end, and
        TakenOverError at the end; in between it may be away.
        """
        home = self._scratch(trial_id)
        home.mkdir(parents=True, exist_ok=True)
        with locked(home):
            copy = _WorkingCopy(self.bucket, trial_id, home / "files", secrets.token_hex(8) if owned else None)
            copy.take_over()
            try:
                with _repeated(copy.push):
                    yield copy.folder
            except BaseException:
                with contextlib.suppress(BucketError, OSError):
                    copy.push()
                raise
            copy.push()
            shutil.rmtree(copy.folder)

    def fetch_cards(self, name: str) -> None:
        """Bring the files `name` of all reports here, for the page over them."""
        keys = [key for key in self.bucket.below("reports") if key.endswith(f"/{name}")]
        for key, content in self.bucket.read(keys).items():
            path = self.folder / key
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, content)

    def push_report(self, page: Path, index: Path) -> str:
        """Copy the folder of a report, and the page over all reports; returns the report's address in the store."""
        for path in [*sorted(page.parent.rglob("*")), index]:
            if path.is_file() and not path.name.startswith("."):
                self.bucket.put(path, str(path.relative_to(self.folder)))
        return f"{self.bucket.url}/{page.relative_to(self.folder)}"

    def _scratch(self, trial_id: str) -> Path:
        return cache_folder("scratch", self.bucket.url) / trial_id


class _WorkingCopy:
    """A trial's folder here and in the store."""

    def __init__(self, bucket: Bucket, trial_id: str, folder: Path, token: str | None) -> None:
        self.folder = folder
        self._bucket, self._trial_id, self._token = bucket, trial_id, token
        self._there: dict[str, tuple[int, int]] = {}
        """What the store has of this folder: names, with the times and sizes of the files here."""

    def take_over(self) -> None:
        """Own the trial, and have its newest files here: the store's, unless those here are further on."""
        if self._token is not None:
            self._bucket.write(_key(self._trial_id, OWNER), self._token.encode())
        names = self._bucket.names(_key(self._trial_id)).keys() - {OWNER}
        if self._progress() <= (RESULT in names, _newest(names)):
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir()
            for name in names:
                self._bucket.get(_key(self._trial_id, name), self.folder / name)
            self._there = self._here()
        else:
            # Those of the store that are gone here are removed by the next push.
            self._there = dict.fromkeys(names, (0, 0))

    def push(self) -> None:
        """Copy new and changed files, the result last, and remove from the store those that are gone here.

        Raises TakenOverError, with nothing copied, where another worker has started the trial since.
        """
        here = self._here()
        changed = [name for name in here if self._there.get(name) != here[name]]
        new = sorted(changed, key=lambda name: (name == RESULT, name))
        gone = self._there.keys() - here.keys()
        if new or gone:
            self._require_ours()
        for name in new:
            self._bucket.put(self.folder / name, _key(self._trial_id, name))
            self._there[name] = here[name]
        for name in gone:
            self._bucket.remove([_key(self._trial_id, name)])
            del self._there[name]

    def _require_ours(self) -> None:
        key = _key(self._trial_id, OWNER)
        if self._token is not None and self._bucket.read([key]).get(key) != self._token.encode():
            raise TakenOverError(
                f"another worker has started this trial in {self._bucket.url} since: let commands that share a "
                "--storage share a --store too"
            )

    def _here(self) -> dict[str, tuple[int, int]]:
        """The files in the folder with their times and sizes; not the lock, nor what is half written."""
        found = {}
        for path in self.folder.iterdir():
            if path.name != "lock" and not path.name.startswith("."):
                with contextlib.suppress(FileNotFoundError):
                    about = path.stat()
                    found[path.name] = (about.st_mtime_ns, about.st_size)
        return found

    def _progress(self) -> tuple[bool, str]:
        """How far the files here are: whether there is a final result, and the newest checkpoint."""
        if not self.folder.is_dir():
            return False, ""
        final = read_outcome(self.folder, self._trial_id) is not None
        return final, _newest(path.name for path in self.folder.iterdir())


@contextmanager
def _repeated(push: Callable[[], None]) -> Iterator[None]:
    """A thread that copies what is new, for as long as this lasts. What fails is tried again at the next look."""
    over = threading.Event()

    def keep() -> None:
        while not over.wait(LOOK_S):
            try:
                push()
            except TakenOverError:
                return
            except (BucketError, OSError):
                continue

    thread = threading.Thread(target=keep, name="mirror", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _newest(names: Iterable[str]) -> str:
    return max((name for name in names if name.startswith("checkpoint-")), default="")


def _key(trial_id: str, name: str | None = None) -> str:
    folder = str(trial_directory(Path(), trial_id))
    return folder if name is None else f"{folder}/{name}"
