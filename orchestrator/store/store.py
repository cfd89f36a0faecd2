"""The results store: what it guarantees, whichever database is behind it."""

from __future__ import annotations

from typing import Self

from orchestrator.store.claims import Claims
from orchestrator.store.progress import Progress
from orchestrator.store.results import Results
from orchestrator.store.studies import Studies


class Store(Studies, Claims, Results, Progress):
    """An index of the trials: which exist, which are done, what they measured; `open_store` makes
    one.

    Guarantees:
    - Every method is one transaction: after a kill or a power cut it happened completely or not at
      all, and what a method that returned has written is on disk.
    - A done trial never changes: no method alters its state, epochs, measurements or spectrum. A
      measurement invented later can be added to it, never replaced.
    - Of several processes that claim the same trial at the same time, one gets it. The attempt for
      which it does is the token of its claim, higher than any before.
    - A result that is done is taken from anyone, once: a trial is its content, so it is right
      whoever made it. Any other end, and epochs, are taken from the attempt for which the trial is
      claimed now. An end without an attempt (one that was found as a file) is taken if no claim
      holds. So what is delivered late, twice, out of order or from an attempt that is over changes
      nothing.
    - Configs, outcomes, epochs, measurements and spectra are read as they were written or not at
      all: damage is a `UserError`.
    - A SQLite file that is deleted or replaced while it is used is a `UserError` of the next
      transaction.
    - NaN and infinity are never stored: one of them is a `ValueError`, and nothing of that call is
      written.
    - Reads see one moment: a trial is never seen half recorded.
    - One store object may be used from several threads. After a fork the child has to open its own.

    A trial's states: planned -> running (`claim`) -> done, diverged or failed (`record`);
    running -> planned (`release`); failed, diverged -> planned (`reset`). A result that is done is
    taken in any other state: a file found after a crash may belong to a trial that was given up
    meanwhile.

    A result of a trial that the store does not have is a `KeyError`. Trouble that the person at the
    keyboard can cure (disk full, read-only folder, server gone, wrong password) is a `UserError`
    from any method. A store that has answered before and is away for a moment (a server that is
    started again, another's long transaction) is waited for."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
