"""The results store and its guarantees, which hold for SQLite and PostgreSQL alike."""

from __future__ import annotations

from typing import Self

from orchestrator.store.claims import Claims
from orchestrator.store.progress import Progress
from orchestrator.store.results import Results
from orchestrator.store.studies import Studies


class Store(Studies, Claims, Results, Progress):
    """Index of trials and their results. Made by `open_store`.

    Guarantees:
    - Each method is one transaction, complete or without effect even at a power cut. Its writes
      are on disk when it returns.
    - A done trial never changes. Later measurements can be added to it, but never replaced.
    - If several processes claim a trial at once, one gets it. Its attempt number is the claim's
      token, higher than any earlier one.
    - The first done result is accepted from any attempt, because a trial is defined by its content.
      Other ends, and epochs, are accepted only from the attempt that holds the claim. An end
      found as a file has no attempt and is accepted only if no claim holds. So a late, repeated
      or reordered message changes nothing.
    - Configs, outcomes, epochs, measurements and spectra are returned as written; damage raises
      UserError.
    - If a SQLite file is deleted or replaced during use, the next transaction raises UserError.
    - NaN and infinity raise ValueError, and the call writes nothing.
    - Each read sees one moment, and no half-recorded trial.
    - Threads may share a store object. After a fork, the child must open its own.

    Trial states: planned -> running (`claim`) -> done, diverged or failed (`record`); running ->
    planned (`release`); failed, diverged -> planned (`reset`). A done result is accepted in every
    other state, because a file found after a crash may belong to a failed trial.

    Any method raises KeyError for a result of an unknown trial, and UserError for trouble that a
    user can fix (disk full, server gone, wrong password). Calls wait while a store that has
    answered before is unreachable.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
