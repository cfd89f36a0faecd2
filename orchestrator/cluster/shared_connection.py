"""A Ray cluster shared by several runs. Starting Ray takes longer than a small study."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

_shared: ExitStack | None = None


@contextmanager
def shared() -> Iterator[None]:
    """Keep Ray running between the runs in this context."""
    global _shared
    with ExitStack() as stack:
        _shared = stack
        try:
            yield
        finally:
            _shared = None


@contextmanager
def hold_open(cluster: AbstractContextManager[None]) -> Iterator[None]:
    """Keep `cluster` open until this context ends, or an active `shared` context."""
    if _shared is not None:
        _shared.enter_context(cluster)
        yield
        return
    with cluster:
        yield
