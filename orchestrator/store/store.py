"""The results store: what it guarantees, whichever database is behind it."""

from __future__ import annotations

from typing import Self

from orchestrator.store.claims import Claims
from orchestrator.store.results import Results
from orchestrator.store.studies import Studies


class Store(Studies, Claims, Results):
    """The truth about which trials exist, which are done and what they measured; `opening.open_store` makes one.

    Guarantees:
    - Every method is one transaction: after a kill or a power cut it happened completely or not at all, and what a
      method that returned has written is on disk.
    - A done trial never changes: no method alters its state, epochs, measurements or spectrum. A measurement invented
      later can be added to it, never replaced.
    - Of several processes that claim the same trial at the same time, one gets it.
    - NaN and infinity are never stored: one of them is a `ValueError`, and nothing of that call is written.
    - Reads see one moment: a trial is never seen half recorded.
    - One store object may be used from several threads. After a fork the child has to open its own.

    A trial's states: planned -> running (`claim`) -> done, diverged or failed (`record`, `fail`); running -> planned
    (`release`); failed, diverged -> planned (`reset`). `record` accepts an outcome in any state but done,
    because a result file found after a crash may belong to a trial that was given up meanwhile.

    Writing of a trial that the store does not have is a `KeyError`. Trouble that the person at the keyboard can cure
    (disk full, read-only folder, server gone, wrong password) is a `UserError` from any method.
    """

    def close(self) -> None:
        """Close all connections. A closed store must not be used again."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
