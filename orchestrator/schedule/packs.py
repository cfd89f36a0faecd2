"""Packs of trials, the unit that Ray Tune schedules.

Each costs Tune about 0.1 s, so short trials share one. Long trials go alone, so that workers end at
about the same time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from math import ceil

from orchestrator.store import PlannedTrial
from orchestrator.worker import Pack
from trainables.stack import stack_key

PACK_S = 10.0
"""Target duration of a pack of short trials."""
PACKS_PER_SLOT = 4
"""Lower limit, so that no slot idles long at the end."""
SMALLEST_PACK_S = 1.0
"""Lower limit: below it, overhead outweighs balance."""
MOST_TRIALS = 100
"""Upper limit, which bounds the loss from one lost message or dead process."""


@dataclass
class Flight:
    """A pack that is with a worker or on its way to one."""

    pack: Pack
    left: dict[str, PlannedTrial]
    """Trials without an outcome, in the worker's order."""
    started: bool = False
    given_up: bool = False
    """Being ended; its remaining trials return to the queue."""

    @property
    def some_ended(self) -> bool:
        """True if one of its trials has ended."""
        return len(self.left) < len(self.pack.trials)


class PackQueue:
    """Packs that wait for a worker. Packs that must run alone come last, one at a time."""

    def __init__(self) -> None:
        self.shared, self._alone = deque[Pack](), deque[Pack]()

    def __bool__(self) -> bool:
        return bool(self.shared or self._alone)

    def add(self, packs: Sequence[Pack], *, first: bool = False) -> None:
        """Queue packs behind all others, or ahead of them if `first`."""
        self._alone.extend(pack for pack in packs if pack.alone)
        shared = [pack for pack in packs if not pack.alone]
        if first:
            self.shared.extendleft(reversed(shared))
        else:
            self.shared.extend(shared)

    def ready(self, out: Collection[Pack]) -> deque[Pack]:
        """Return the queue to take from while the packs `out` run."""
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
    """Return packs of the trials, in order; trials that can run together come first.

    `slots` packs run at a time. `at_once` returns, by trial id, how many trials may run
    together."""
    groups: dict[tuple[Hashable, int], list[PlannedTrial]] = {}
    others: list[PlannedTrial] = []
    for trial in trials:
        most = at_once(trial.trial_id)
        key = stack_key(trial.validated) if most > 1 else None
        (others if key is None else groups.setdefault((key, most), [])).append(trial)
    packs = []
    for (_, most), mates in groups.items():
        # Each slot gets trials if there are enough.
        size = min(most, ceil(len(mates) / slots))
        packs += _cut(mates, size, at_once=size)
    size = pack_size(len(others), slots=slots, seconds_per_trial=seconds_per_trial)
    return packs + _cut(others, size)


def _cut(trials: Sequence[PlannedTrial], size: int, at_once: int = 1) -> list[Pack]:
    starts = range(0, len(trials), size)
    return [Pack(tuple(trials[start : start + size]), at_once=at_once) for start in starts]


def pack_size(trials: int, *, slots: int, seconds_per_trial: float) -> int:
    """Return the size of a pack: about 10 s of work, less if slots would idle, at most 100
    trials."""
    seconds = max(seconds_per_trial, PACK_S / MOST_TRIALS)
    balanced = max(ceil(trials / (PACKS_PER_SLOT * slots)), ceil(SMALLEST_PACK_S / seconds))
    return max(1, min(round(PACK_S / seconds), balanced))
