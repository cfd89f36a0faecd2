"""The packs that wait for a worker, in their order, where not every machine can take each of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from orchestrator.schedule.packs import Pack


@dataclass(frozen=True)
class Waiting:
    """A pack that waits."""

    pack: Pack
    claimed: bool
    """True for trials of a dead pack that were never started: they are ours already, and made no attempt."""
    barred: int
    """Of so many packs that fit on the machines at a time, this cannot be one: there it does not fit."""


class Queue:
    """Gives the next pack for which a machine may be free."""

    def __init__(self, barred: Callable[[Pack], int] | None) -> None:
        """`barred` says of how many places a pack is barred; None where all machines are alike."""
        self._barred = barred
        self._packs: deque[Waiting] = deque()

    def __bool__(self) -> bool:
        return bool(self._packs)

    def append(self, packs: Iterable[Pack], *, claimed: bool = False) -> None:
        """Put packs at the end."""
        self._packs.extend(self._waiting(pack, claimed) for pack in packs)

    def put_back(self, packs: Sequence[Pack]) -> None:
        """Put packs, whose trials are claimed, before all others."""
        self._packs.extendleft(self._waiting(pack, claimed=True) for pack in reversed(packs))

    def first(self, places: int, out: Sequence[int]) -> Waiting | None:
        """The first pack that may go, or None; of those that fit on no more places than it, one at most waits there.

        `places` packs fit on the machines at a time, and `out` says of how many of them each pack that is handed out is
        barred. Without this rule packs that wait for large GPUs would keep all others off the small ones.
        """
        full: set[int] = set()
        for each in self._packs:
            if each.barred in full:
                continue
            if sum(barred >= each.barred for barred in out) <= max(1, places - each.barred):
                return each
            full.add(each.barred)
        return None

    def remove(self, each: Waiting) -> None:
        """Take out what `first` gave."""
        self._packs.remove(each)

    def _waiting(self, pack: Pack, claimed: bool) -> Waiting:
        return Waiting(pack, claimed, 0 if self._barred is None else self._barred(pack))
