"""The class `Store`, with guarantees that hold for SQLite and PostgreSQL alike."""

from __future__ import annotations

from typing import Self

from orchestrator.store.claims import Claims
from orchestrator.store.progress import Progress
from orchestrator.store.results import Results
from orchestrator.store.studies import Studies


class Store(Studies, Claims, Results, Progress):
    """A database of trials and their results, opened by `open_store`.

    Guarantees:
    - Each method is one transaction. It takes full effect or none, even at a power cut. Its writes
      are on disk when it returns.
    - A done trial never changes. Later measurements can be added to it, but never replaced.
    - If several processes claim a trial at once, one gets it. The claim is identified by the
      trial's attempt number, which grows with each claim.
    - The first done result is accepted in any state and from any attempt, because all attempts have
      the same config. Other outcomes, and epochs, are accepted only from the attempt that holds the
      claim. An outcome without an attempt (from a file) is accepted only if no claim holds. Late,
      repeated or reordered messages therefore change nothing.
    - Configs, outcomes, epochs, measurements and spectra are returned as written; damage raises
      UserError.
    - If a SQLite file is deleted or replaced during use, the next transaction raises UserError.
    - NaN and infinity raise ValueError, and the call writes nothing.
    - A read sees all data at the same moment, and no half-recorded trial.
    - Threads may share a store object. After a fork, the child must open its own.

    `claim` turns a planned trial into a running one, and `release` turns it back. `record` ends a
    trial as done, pruned (stopped early), diverged or failed. `reset` plans an ended trial again,
    unless it is done.

    Methods raise KeyError for a result of an unknown trial. They raise UserError for problems that
    a user can fix (disk full, server gone, wrong password). Calls wait while a store that has
    answered before is unreachable.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
