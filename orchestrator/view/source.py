"""What the pages read: the store, opened again after trouble, and what was read of it a moment
ago."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from orchestrator.forecast import seconds_left
from orchestrator.storage import FolderStorage, Storage, storage_at
from orchestrator.store import (
    ENDED,
    LOST,
    LostTrial,
    RunningTrial,
    Store,
    StudyKey,
    StudySummary,
    open_store,
)
from orchestrator.sweep import retry_command
from orchestrator.view.answers import Answers, AnswersBehind
from orchestrator.view.table import StudyTable, read_table
from search_spaces.catalog import NAMES
from trainables.errors import UserError

FRESH_S = 1.5
"""Several viewers share what was read so lately, or why it could not be."""
FETCH_EVERY_S = 10.0
"""How often a trial's files are asked for again."""
TRIALS_KEPT = 30_000
"""Of studies that were looked at lately; at least one study."""
LOST_SHOWN = 50
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Overview:
    """How far every study is, what runs and what was lost."""

    studies: list[StudySummary]
    running: list[RunningTrial]
    lost: list[LostTrial]
    """Those that ended last."""
    lost_count: int
    """Of all trials, one of several studies once."""
    seconds_left: dict[StudyKey, float]
    """Of studies that run and have come far enough to say so."""
    retries: list[str]
    """What to type for the studies that have trials without a result."""

    def of(self, key: StudyKey) -> StudySummary:
        """How far this study is. Raises UserError where the store has it no more."""
        for summary in self.studies:
            if summary.key == key:
                return summary
        raise UserError(
            f"the store has no study {key.variant!r} any more: choose one on the overview"
        )


@dataclass
class _Kept:
    """Something that was read, and when."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    value: Any = None
    error: UserError | None = None
    read_s: float = float("-inf")


class Source:
    """The store at `url` and the storage; safe to use from several threads.

    Methods raise UserError where the store cannot be read, and try again at their next call.
    """

    def __init__(self, url: str, storage: str) -> None:
        self.url = url
        self.storage: Storage = storage_at(storage)
        self._store: Store | None = None
        self._lock = threading.Lock()
        self._overview = _Kept()
        self._tables: dict[StudyKey, _Kept] = {}
        self._answers = AnswersBehind(url)
        self._fetching = threading.Lock()
        """Held while one trial's files are brought."""
        self._fetched_s: dict[str, float] = {}

    @contextmanager
    def store(self) -> Iterator[Store]:
        """The store; after any trouble the next one to ask opens it again."""
        opened = self._store or open_store(self.url, create=False, away_s=0)
        with self._lock:
            # Of two that opened it at the same time, one keeps it for the others.
            self._store, spare = (
                self._store or opened,
                opened if self._store not in (None, opened) else None,
            )
            opened = self._store
        if spare is not None:
            spare.close()
        try:
            yield opened
        except UserError:
            with self._lock:
                if self._store is opened:
                    self._store = None
            opened.close()
            raise

    def fetch(self, trial_id: str, files: Sequence[str]) -> None:
        """Have these files of the trial brought from the storage in the background, now and then:
        who looks is shown what is here, and waits for no object store."""
        if isinstance(self.storage, FolderStorage) or not self._fetching.acquire(blocking=False):
            return
        if time.monotonic() - self._fetched_s.get(trial_id, float("-inf")) < FETCH_EVERY_S:
            self._fetching.release()
            return

        def bring() -> None:
            try:
                with suppress(UserError, OSError):
                    self.storage.bring([trial_id], files)
            finally:
                self._fetched_s[trial_id] = time.monotonic()
                self._fetching.release()

        threading.Thread(target=bring, name="fetch", daemon=True).start()

    def overview(self) -> Overview:
        """As it was at most a moment ago."""
        return self._kept(self._overview, lambda _: self._read_overview())

    def warm(self) -> None:
        """Read the study that was planned last, which is the likeliest to be looked at."""
        with suppress(UserError):
            for summary in self.overview().studies[-1:]:
                self.table(summary.key)

    def key(self, variant: str) -> StudyKey:
        """The study of this variant. Raises UserError where the store has none."""
        keys = [summary.key for summary in self.overview().studies]
        key = next((key for key in keys if key.variant == variant), None)
        if key is None:
            raise UserError(f"the store has no study {variant!r}: choose one on the overview")
        return key

    def table(self, key: StudyKey) -> StudyTable:
        """The study's trials as they were at most a moment ago."""
        with self._lock:
            kept = self._tables.pop(key, _Kept())
            self._tables[key] = kept
            self._drop_tables()

        def read(before: StudyTable | None) -> StudyTable:
            with self.store() as opened:
                return read_table(opened, key, before)

        return self._kept(kept, read)

    def answers(self, key: StudyKey) -> Answers | None:
        """What the study's report would say of its trials, as it was computed last; None before
        that.

        Nobody waits for it: it is computed behind, for one study after another, once a trial has
        ended."""
        if key.study not in NAMES:
            return Answers()
        versions = {
            trial_id: version
            for trial_id, version in self.table(key).versions.items()
            if version[0] in ENDED
        }
        return self._answers.get(
            key, versions, trials_run=bool(self.overview().of(key).counts["running"])
        )

    def trial(self, start: str) -> tuple[str, list[StudyKey]]:
        """The one trial whose id begins so, and the studies that have it. Raises UserError where
        there is none."""
        with self.store() as opened:
            rows = opened.studies_of(start) if start else []
        ids = dict.fromkeys(trial_id for trial_id, _ in rows)
        if len(ids) != 1:
            raise UserError(
                f"the store has {len(ids) or 'no'} trials whose id begins with {start!r}: choose "
                f"one of a study"
            )
        return next(iter(ids)), [key for _, key in rows]

    def _drop_tables(self) -> None:
        """Forget those looked at longest ago."""
        trials = {
            key: len(kept.value.ids) if kept.value else 0 for key, kept in self._tables.items()
        }
        for key in list(trials)[:-1]:
            if sum(trials.values()) > TRIALS_KEPT:
                del self._tables[key], trials[key]

    def _read_overview(self) -> Overview:
        with self.store() as opened:
            studies, running = opened.studies(), opened.running()
            busy = [summary for summary in studies if summary.counts["running"]]
            incomplete = [
                summary.key for summary in studies if any(summary.counts[state] for state in LOST)
            ]
            left = {summary.key: _seconds_left(opened, summary, running) for summary in busy}
            return Overview(
                studies=studies,
                running=running,
                lost=opened.lost(LOST_SHOWN),
                lost_count=opened.lost_count(),
                seconds_left={key: seconds for key, seconds in left.items() if seconds is not None},
                retries=[retry_command(key) for key in incomplete],
            )

    def _kept(self, kept: _Kept, read: Callable[[T | None], T]) -> T:
        with kept.lock:
            if time.monotonic() - kept.read_s >= FRESH_S:
                try:
                    kept.value, kept.error = read(kept.value), None
                except UserError as error:
                    kept.error = error
                kept.read_s = time.monotonic()
            if kept.error is not None:
                raise kept.error
            value: T = kept.value
            return value


def _seconds_left(store: Store, summary: StudySummary, running: list[RunningTrial]) -> float | None:
    """By the trials that the run has brought to an end and the epochs of those that run. None
    before the first end, and where nobody runs any."""
    mine = [trial for trial in running if trial.key == summary.key and trial.alive]
    ended, seconds = store.ended_in_run(summary.key) if mine else (0, 0.0)
    # Epochs of a trial's earlier attempt may be of an earlier run, whose time is not counted.
    done = ended + sum(_share(trial) for trial in mine if trial.attempt == 1)
    left = summary.counts["planned"] + sum(1 - _share(trial) for trial in mine)
    return seconds_left(seconds, done, left) if ended else None


def _share(trial: RunningTrial) -> float:
    """Of its epochs that are over."""
    return min(1.0, (trial.epoch or 0) / trial.epoch_count) if trial.epoch_count else 0.0
