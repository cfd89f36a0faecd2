"""A Ray cluster shared by runs, since Ray's start takes longer than a small study."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

_shared: ExitStack | None = None


@contextmanager
def shared() -> Iterator[None]:
    """Keep a cluster that starts here running until the context ends."""
    global _shared
    with ExitStack() as stack:
        _shared = stack
        try:
            yield
        finally:
            _shared = None


@contextmanager
def hold_open(cluster: AbstractContextManager[None]) -> Iterator[None]:
    """Enter a cluster until this context ends, or until an active `shared` ends."""
    if _shared is not None:
        _shared.enter_context(cluster)
        yield
        return
    with cluster:
        yield
