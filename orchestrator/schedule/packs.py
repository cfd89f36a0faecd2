"""Group trials into packs, the unit that Ray Tune schedules.

Handing a pack to a worker costs Tune about 0.1 s, so short trials share one; long trials go alone,
so that workers end at about the same time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from math import ceil

from orchestrator.store import PlannedTrial
from orchestrator.worker import Pack
from trainables.stack import stack_key

PACK_S = 10.0
"""A pack lasts about so long, where trials are shorter."""
PACKS_PER_SLOT = 4
"""At least so many packs a slot, so that no slot idles long at the end."""
SMALLEST_PACK_S = 1.0
"""Packs are not cut below this for the sake of balance: their overhead would outweigh it."""
MOST_TRIALS = 100
"""The largest pack: what one lost message or one dead process puts at stake stays small."""


@dataclass
class Flight:
    """A pack that is with a worker, or on its way to one."""

    pack: Pack
    left: dict[str, PlannedTrial]
    """The trials without an outcome, in the order in which the worker takes them up."""
    started: bool = False
    given_up: bool = False
    """It is being ended: what is left of it goes back into the queue."""

    @property
    def some_ended(self) -> bool:
        """Whether a trial of it has come to its end."""
        return len(self.left) < len(self.pack.trials)


class PackQueue:
    """Packs that wait for a worker. Those that run alone come last, one at a time."""

    def __init__(self) -> None:
        self.shared, self._alone = deque[Pack](), deque[Pack]()

    def __bool__(self) -> bool:
        return bool(self.shared or self._alone)

    def add(self, packs: Sequence[Pack], *, first: bool = False) -> None:
        """Queue packs behind all others, or before them."""
        self._alone.extend(pack for pack in packs if pack.alone)
        shared = [pack for pack in packs if not pack.alone]
        if first:
            self.shared.extendleft(reversed(shared))
        else:
            self.shared.extend(shared)

    def ready(self, out: Collection[Pack]) -> deque[Pack]:
        """Return the queue from which to take the next pack while these packs are `out`."""
        if any(pack.alone for pack in out):
            return deque()
        if self.shared:
            return self.shared
        return deque() if out else self._alone


def pack(
    trials: Sequence[PlannedTrial],
    *,
    slots: int,
    seconds_per_trial: float,
    at_once: Callable[[str], int] = lambda _: 1,
) -> list[Pack]:
    """Cut trials into packs, in their order: first those that can run at the same time, as many
    together as `at_once` returns by trial id.

    `slots` is how many packs run at the same time, `seconds_per_trial` an estimate.
    """
    groups: dict[tuple[Hashable, int], list[PlannedTrial]] = {}
    others: list[PlannedTrial] = []
    for trial in trials:
        most = at_once(trial.trial_id)
        key = stack_key(trial.validated) if most > 1 else None
        (others if key is None else groups.setdefault((key, most), [])).append(trial)
    packs = []
    for (_, most), mates in groups.items():
        # No slot stays without trials if there are enough of them.
        size = min(most, ceil(len(mates) / slots))
        packs += _cut(mates, size, at_once=size)
    size = pack_size(len(others), slots=slots, seconds_per_trial=seconds_per_trial)
    return packs + _cut(others, size)


def _cut(trials: Sequence[PlannedTrial], size: int, at_once: int = 1) -> list[Pack]:
    starts = range(0, len(trials), size)
    return [Pack(tuple(trials[start : start + size]), at_once=at_once) for start in starts]


def pack_size(trials: int, *, slots: int, seconds_per_trial: float) -> int:
    """How many trials a pack may hold: about 10 s of work, fewer where slots would run dry, at most
    100."""
    seconds = max(seconds_per_trial, PACK_S / MOST_TRIALS)
    balanced = max(ceil(trials / (PACKS_PER_SLOT * slots)), ceil(SMALLEST_PACK_S / seconds))
    return max(1, min(round(PACK_S / seconds), balanced))
