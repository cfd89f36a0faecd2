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
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from orchestrator.storage.bucket import Bucket, BucketError, patiently
from orchestrator.storage.cache import cache_folder
from trainables.trial_folder.files import locked, write_file
from trainables.trial_folder.folder import FENCE, LOCK, TrialFolder, trial_directory

LOOK_S = 2.0
"""How often a running trial's folder is looked at for new files."""
RESULT = "result.json"
RESULT_FILES = (RESULT, "spectrum.npy")
OWNER = "owner"
"""The object that names the working copy whose files a trial takes: that of the worker that started last."""
NAME = ".copy"
"""The file in a working copy with its own name; written when it is whole."""
NOT_COPIED = (LOCK, FENCE)
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
        # Another command of this machine may bring the same files: what one reads it writes before the other reads.
        with locked(self.folder):
            self._bring(wanted)

    def _bring(self, wanted: Sequence[tuple[str, str]]) -> None:
        if len(wanted) > MANY:
            known = set(self.bucket.below("trials"))
            there = [each for each in wanted if _key(*each) in known]
        else:
            there = list(wanted)
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
        """Rename the trial's result as `orchestrator.schedule.recording` does with one that is of no use."""
        kept = trial_directory(self.folder, trial_id) / "result.unusable.json"
        self.bucket.put(kept, _key(trial_id, kept.name))
        self.bucket.remove([_key(trial_id, RESULT)])

    def forget(self, trial_id: str, *, checkpoints: bool) -> None:
        """Remove the trial's result, and its checkpoints too where it is to start anew.

        In that case it has no owner, and what killed workers left on whichever machine does not count.
        """
        names = self.bucket.names(_key(trial_id))
        old = [name for name in names if name == RESULT or (checkpoints and name.startswith("checkpoint-"))]
        self.bucket.remove(_key(trial_id, name) for name in [*old, *([OWNER] if checkpoints else [])])

    @contextmanager
    def working(self, trial_id: str, *, owned: bool = True) -> Iterator[Path]:
        """The trial's folder on this machine, for as long as it is worked in; its files are in the store in the end.

        Only one process of a machine works in it: a second one waits. With `owned`, a worker elsewhere that has the
        same trial loses it to this one. Where the store is away at the start or the end, waits for it; in between it
        is not needed. Raises BucketError where it does not come back or refuses, and TakenOverError at the end.
        """
        home = self._scratch(trial_id)
        home.mkdir(parents=True, exist_ok=True)
        with locked(home):
            copy = _WorkingCopy(self.bucket, trial_id, home / "files", owned=owned)
            patiently(copy.take_over)
            try:
                with _repeated(copy):
                    yield copy.folder
            except BaseException:
                with contextlib.suppress(BucketError, OSError):
                    copy.push()
                raise
            patiently(copy.push)
            shutil.rmtree(copy.folder, ignore_errors=True)

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

    def __init__(self, bucket: Bucket, trial_id: str, folder: Path, *, owned: bool) -> None:
        self.folder = folder
        self._bucket, self._trial_id, self._owned = bucket, trial_id, owned
        self._name = b""
        self._there: dict[str, tuple[int, int]] = {}
        """What the store has of this folder: names, with the times and sizes of the files here."""

    def take_over(self) -> None:
        """Own the trial, and have its newest files here.

        Those that a killed worker left here count where nobody has worked on the trial since, elsewhere: then they are
        further on than the store's, or the same.
        """
        owner, names = self._owner(), self._names()
        if self._left_here(owner) and self._progress() >= (RESULT in names, _newest(names)):
            # Those of the store that are gone here are removed by the next push.
            self._there = dict.fromkeys(names, (0, 0))
            return
        if self.folder.exists():
            shutil.rmtree(self.folder)
        self.folder.mkdir()
        if self._owned or owner is None:
            owner = secrets.token_hex(8).encode()
            self._bucket.write(_key(self._trial_id, OWNER), owner)
        for name in self._names():  # anew: the one that had the trial may have gone on until now
            self._bucket.get(_key(self._trial_id, name), self.folder / name)
        self._there = self._here()
        self._name = owner
        write_file(self.folder / NAME, owner)

    def push(self) -> None:
        """Copy new and changed files, the result last, and remove from the store those that are gone here.

        Raises TakenOverError, with nothing copied, where another worker has started the trial since.
        """
        here = self._here()
        changed = [name for name in here if self._there.get(name) != here[name]]
        new = sorted(changed, key=lambda name: (name == RESULT, name))
        # A folder without a state of the trial has been cleared by somebody else.
        gone = self._there.keys() - here.keys() if RESULT in here or _newest(here) else ()
        if new or gone:
            self._require_ours()
        for name in new:
            self._bucket.put(self.folder / name, _key(self._trial_id, name))
            self._there[name] = here[name]
        for name in gone:
            self._bucket.remove([_key(self._trial_id, name)])
            del self._there[name]

    def give_up(self) -> None:
        """Have the worker stop at its next checkpoint: the trial is another's."""
        (self.folder / FENCE).unlink(missing_ok=True)

    def _require_ours(self) -> None:
        if self._owned and self._owner() != self._name:
            raise TakenOverError(
                f"another worker has started this trial in {self._bucket.url} since: let commands that share a "
                "--storage share a --store too"
            )

    def _owner(self) -> bytes | None:
        key = _key(self._trial_id, OWNER)
        return self._bucket.read([key]).get(key)

    def _names(self) -> set[str]:
        return self._bucket.names(_key(self._trial_id)).keys() - {OWNER}

    def _left_here(self, owner: bytes | None) -> bool:
        """Whether there is a whole working copy here, and it is the owner."""
        try:
            self._name = (self.folder / NAME).read_bytes()
        except FileNotFoundError:
            return False
        return self._name == owner

    def _here(self) -> dict[str, tuple[int, int]]:
        """The files in the folder with their times and sizes; not those of the machine, nor what is half written."""
        found = {}
        left_out = NOT_COPIED if (self.folder / RESULT).exists() else (*NOT_COPIED, RESULT)
        for path in self.folder.iterdir():
            # A result that comes while this looks is left for the next look, with the files that it speaks of.
            if path.name not in left_out and not path.name.startswith("."):
                with contextlib.suppress(FileNotFoundError):
                    about = path.stat()
                    found[path.name] = (about.st_mtime_ns, about.st_size)
        return found

    def _progress(self) -> tuple[bool, str]:
        """How far the files here are: whether there is a final result, and the newest checkpoint."""
        final = TrialFolder(self.folder, self._trial_id).outcome() is not None
        return final, _newest(path.name for path in self.folder.iterdir())


@contextmanager
def _repeated(copy: _WorkingCopy) -> Iterator[None]:
    """A thread that copies what is new, for as long as this lasts. What fails is tried again at the next look."""
    over = threading.Event()

    def keep() -> None:
        while not over.wait(LOOK_S):
            try:
                copy.push()
            except TakenOverError:
                copy.give_up()
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
