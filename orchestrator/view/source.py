"""What the pages read: the store and the storage, shared by all viewers for a moment."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Generic, TypeVar, cast

from orchestrator.forecast import seconds_left
from orchestrator.storage import Storage, storage_at
from orchestrator.store import (
    LostTrial,
    RunningTrial,
    Store,
    StudyKey,
    StudySummary,
    open_store,
)
from orchestrator.view.trials import StudyTrials, read_trials
from trainables.errors import UserError

FRESH_S = 1.5
FETCH_EVERY_S = 10.0
MOST_STUDIES = 5
"""Studies whose trials are kept in memory."""
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Overview:
    """How far every study is, what runs and what was lost."""

    studies: list[StudySummary]
    running: list[RunningTrial]
    lost: list[LostTrial]
    seconds_left: dict[StudyKey, float | None]
    """By study that runs; None before a run has come far enough."""


class Shared(Generic[T]):
    """What `read` returned, for `FRESH_S`; `read` gets what it returned before."""

    def __init__(self, read: Callable[[T | None], T]) -> None:
        self._read, self._lock = read, threading.Lock()
        self._value: T | None = None
        self._read_s = float("-inf")

    def get(self) -> T:
        """The value, read again if it is too old."""
        with self._lock:
            if time.monotonic() - self._read_s >= FRESH_S:
                self._value = self._read(self._value)
                self._read_s = time.monotonic()
            return cast("T", self._value)


class Source:
    """The store at `url` and the storage; safe to use from several threads.

    Methods raise UserError if the store cannot be read, and try again at their next call."""

    def __init__(self, url: str, storage: str) -> None:
        self.url = url
        self.storage: Storage = storage_at(storage)
        self._overview = Shared(self._read_overview)
        self._trials = lru_cache(MOST_STUDIES)(
            lambda variant: Shared(partial(self._read_trials, variant))
        )
        self._fetching = threading.Lock()
        self._fetched_s: dict[str, float] = {}

    def store(self) -> Store:
        """The store, opened: it may be another one than a moment ago."""
        return open_store(self.url, create=False, check=False, away_s=0)

    def overview(self) -> Overview:
        """How far every study is."""
        return self._overview.get()

    def study(self, variant: str) -> StudySummary:
        """How far the study of this variant is. Raises UserError if the store has none."""
        for summary in self.overview().studies:
            if summary.key.variant == variant:
                return summary
        raise UserError(f"the store has no study {variant!r}: choose one on the overview")

    def trials(self, variant: str) -> StudyTrials:
        """The trials of the study of this variant. Raises UserError if the store has none."""
        return self._trials(variant).get()

    def warm(self) -> None:
        """Read the study that was planned last, which is the likeliest to be looked at."""
        with suppress(UserError):
            for summary in self.overview().studies[-1:]:
                self.trials(summary.key.variant)

    def trial(self, start: str) -> tuple[str, list[StudyKey]]:
        """The one trial whose id begins so, and the studies that have it. Raises UserError if there
        is none, or several."""
        with self.store() as opened:
            rows = opened.studies_of(start) if start else []
        ids = {trial_id for trial_id, _ in rows}
        if len(ids) != 1:
            raise UserError(
                f"the store has {len(ids) or 'no'} trials whose id begins with {start!r}: choose "
                "one of a study"
            )
        return rows[0][0], [key for _, key in rows]

    def fetch(self, what: str, bring: Callable[[], None]) -> None:
        """Have files of the storage brought in the background, one request at a time: a page shows
        the files that are here and waits for no object store."""
        is_old = time.monotonic() - self._fetched_s.get(what, float("-inf")) >= FETCH_EVERY_S
        if not is_old or not self._fetching.acquire(blocking=False):
            return

        def fetch() -> None:
            try:
                with suppress(UserError, OSError):
                    bring()
            finally:
                self._fetched_s[what] = time.monotonic()
                self._fetching.release()

        threading.Thread(target=fetch, name="fetch", daemon=True).start()

    def _read_trials(self, variant: str, before: StudyTrials | None) -> StudyTrials:
        key = self.study(variant).key
        with self.store() as opened:
            return read_trials(opened, key, before)

    def _read_overview(self, _: Overview | None) -> Overview:
        with self.store() as opened:
            studies, running = opened.studies(), opened.running()
            left = {
                summary.key: _seconds_left(opened, summary, running)
                for summary in studies
                if summary.counts["running"]
            }
            return Overview(studies=studies, running=running, lost=opened.lost(), seconds_left=left)


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
