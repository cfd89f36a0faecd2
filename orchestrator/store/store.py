"""The class `Store`, with guarantees that hold for SQLite and PostgreSQL alike."""

from __future__ import annotations

from typing import Self

from orchestrator.store.claims import Claims
from orchestrator.store.progress import Progress
from orchestrator.store.results import Results
from orchestrator.store.studies import Studies


class Store(Studies, Claims, Results, Progress):
    """A database of trials and their results, opened by `open_store`.

    - Each method is one transaction: it takes full effect or none, even at a power cut. Data are on
      disk when it returns.
    - A read sees all data at the same moment.
    - Values are returned as written. If they are damaged, UserError is raised.
    - NaN and infinity raise ValueError, and the call writes nothing.
    - Threads may share a store object. After a fork, the child must open a new one.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
