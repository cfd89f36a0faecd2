"""A Ray cluster that several runs of one command share: starting one takes longer than a small
study."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

_shared: ExitStack | None = None


@contextmanager
def shared() -> Iterator[None]:
    """Within this context a cluster stays up once something has started it, until the context
    ends."""
    global _shared
    with ExitStack() as stack:
        _shared = stack
        try:
            yield
        finally:
            _shared = None


@contextmanager
def entered(cluster: AbstractContextManager[None]) -> Iterator[None]:
    """Enter a cluster for as long as this context lasts, or as `shared` lasts, where we are in
    one."""
    if _shared is not None:
        _shared.enter_context(cluster)
        yield
        return
    with cluster:
        yield
