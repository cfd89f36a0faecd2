"""Reads of the store and the storage for the pages, cached for all viewers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Generic, TypeVar, cast

from orchestrator.analysis import VALID_PERPLEXITY
from orchestrator.forecast import seconds_left
from orchestrator.report import CARD_FILE, Card, read_card
from orchestrator.storage import Storage, storage_at
from orchestrator.store import (
    LostTrial,
    RunningTrial,
    Store,
    StudyKey,
    StudySummary,
    open_store,
)
from orchestrator.sweep import retry_command, study_argument
from orchestrator.view.trials import StudyTrials, read_trials
from trainables.errors import UserError

CACHE_S = 1.5
FETCH_EVERY_S = 10.0
MOST_STUDIES = 5
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Overview:
    """Studies, running trials, and trials without a result."""

    studies: list[StudySummary]
    running: list[RunningTrial]
    lost: list[LostTrial]
    retries: list[str]
    """Commands that run failed trials again, of the latest planned study first."""
    seconds_left: dict[StudyKey, float | None]
    """Running study -> estimated seconds left; None until a trial of the run has ended."""


class CachedValue(Generic[T]):
    """A value that `read` renews after `CACHE_S` seconds; `read` receives the old value."""

    def __init__(self, read: Callable[[T | None], T]) -> None:
        self._read, self._lock = read, threading.Lock()
        self._value: T | None = None
        self._read_s = float("-inf")

    def get(self) -> T:
        """Return the value, read at most `CACHE_S` seconds ago."""
        with self._lock:
            if time.monotonic() - self._read_s >= CACHE_S:
                self._value = self._read(self._value)
                self._read_s = time.monotonic()
            return cast("T", self._value)


class Source:
    """Thread-safe access to the store at `url` and to the storage.

    Methods raise UserError if the store cannot be read; the next call tries again.
    """

    def __init__(self, url: str, storage: str) -> None:
        self.url = url
        self.storage: Storage = storage_at(storage)
        self._overview = CachedValue(self._read_overview)
        self._trials = lru_cache(MOST_STUDIES)(
            lambda variant: CachedValue(partial(self._read_trials, variant))
        )
        self._fetch_lock = threading.Lock()
        self._fetch_s: dict[str, float] = {}

    def store(self) -> Store:
        """Open the store again, because it may have been replaced since the last call."""
        return open_store(self.url, create=False, check=False, away_s=0)

    def overview(self) -> Overview:
        """Return the cached overview."""
        return self._overview.get()

    def study(self, variant: str) -> StudySummary:
        """Return the study's progress. Raises UserError if it does not exist."""
        for summary in self.overview().studies:
            if summary.key.variant == variant:
                return summary
        raise UserError(f"the store has no study {variant!r}. Choose one on the overview.")

    def trials(self, variant: str) -> StudyTrials:
        """Return the study's trials. Raises UserError if the study does not exist."""
        return self._trials(variant).get()

    def trial(self, start: str) -> tuple[str, list[StudyKey]]:
        """Return the one trial whose id begins with `start`, and its studies.

        Raises UserError if no trial or several match.
        """
        with self.store() as opened:
            rows = opened.studies_of(start) if start else []
        ids = {trial_id for trial_id, _ in rows}
        if len(ids) != 1:
            raise UserError(
                f"the store has {len(ids) or 'no'} trials whose id begins with {start!r}. "
                "Choose a trial in a study's table."
            )
        return rows[0][0], [key for _, key in rows]

    def card(self, key: StudyKey) -> Card | None:
        """Return the card of the study's report, if there is one."""
        return read_card(self.storage.folder / "reports" / key.variant / CARD_FILE)

    def fetch(self, key: str, bring: Callable[[], object]) -> None:
        """Call `bring` in a background thread, so that pages do not wait.

        Skip the call if another one is running, or if the last one for `key` ended less than
        `FETCH_EVERY_S` seconds ago.
        """
        is_old = time.monotonic() - self._fetch_s.get(key, float("-inf")) >= FETCH_EVERY_S
        if not is_old or not self._fetch_lock.acquire(blocking=False):
            return

        def fetch() -> None:
            try:
                with suppress(UserError, OSError):
                    bring()
            finally:
                self._fetch_s[key] = time.monotonic()
                self._fetch_lock.release()

        threading.Thread(target=fetch, name="fetch", daemon=True).start()

    def _read_trials(self, variant: str, previous: StudyTrials | None) -> StudyTrials:
        key = self.study(variant).key
        card = self.card(key)
        with self.store() as opened:
            return read_trials(opened, key, previous, (card and card.goal) or VALID_PERPLEXITY)

    def _read_overview(self, _: Overview | None) -> Overview:
        with self.store() as opened:
            studies, running = opened.studies(), opened.running()
            estimates = {
                summary.key: _seconds_left(opened, summary, running)
                for summary in studies
                if summary.counts["running"]
            }
            return Overview(
                studies=studies,
                running=running,
                lost=opened.lost(),
                retries=[
                    self._retry(summary.key)
                    for summary in reversed(studies)
                    if summary.counts["failed"]
                ],
                seconds_left=estimates,
            )

    def _retry(self, key: StudyKey) -> str:
        self.fetch("studies", self.storage.study_files)
        return retry_command(key, study_argument(key.study, str(self.storage.folder)))


def _seconds_left(store: Store, summary: StudySummary, running: list[RunningTrial]) -> float | None:
    trials = [trial for trial in running if trial.key == summary.key and trial.alive]
    ended_count, seconds = store.ended_in_run(summary.key) if trials else (0, 0.0)
    # Epochs of an earlier attempt may belong to an earlier run, whose time is not counted.
    work_done = ended_count + sum(_share(trial) for trial in trials if trial.attempt == 1)
    work_left = summary.counts["planned"] + sum(1 - _share(trial) for trial in trials)
    return seconds_left(seconds, work_done, work_left) if ended_count else None


def _share(trial: RunningTrial) -> float:
    return min(1.0, (trial.epoch or 0) / trial.epoch_count) if trial.epoch_count else 0.0
