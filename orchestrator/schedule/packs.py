"""Packs: groups of trials that Ray Tune schedules together and one worker runs.

A pack costs Tune about 0.1 s, so short trials share a pack. Long trials have their own packs, so
that workers end at about the same time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from math import ceil

from orchestrator.store import PlannedTrial
from orchestrator.worker import Pack
from trainables.stack import stack_key

# A pack should take `PACK_S`. Packs are smaller if otherwise not all slots would end together, but
# not shorter than `MIN_PACK_S`, to limit overhead.
PACK_S = 10.0
PACKS_PER_SLOT = 4
MIN_PACK_S = 1.0
# This limits the loss if a message is lost or a process dies.
MAX_TRIALS = 100


@dataclass
class Flight:
    """A pack that was handed out to a worker."""

    pack: Pack
    open_trials: dict[str, PlannedTrial]
    """Trials without an outcome, in the order in which the worker runs them."""
    started: bool = False
    machine: str = ""
    """Ray's node id of the worker's machine, after its first message."""
    given_up: bool = False
    """True while the pack is being ended. Its open trials return to the queue."""

    @property
    def has_outcomes(self) -> bool:
        """True if a trial of the pack has ended."""
        return len(self.open_trials) < len(self.pack.trials)


class PackQueue:
    """Waiting packs. Packs that must run alone come last, one at a time."""

    def __init__(self) -> None:
        self.shared_packs, self._lone_packs = deque[Pack](), deque[Pack]()

    def __bool__(self) -> bool:
        return bool(self.shared_packs or self._lone_packs)

    def add(self, packs: Sequence[Pack], *, first: bool = False) -> None:
        """Add packs to the end of the queue, or to its start if `first`."""
        self._lone_packs.extend(pack for pack in packs if pack.alone)
        shared_packs = [pack for pack in packs if not pack.alone]
        if first:
            self.shared_packs.extendleft(reversed(shared_packs))
        else:
            self.shared_packs.extend(shared_packs)

    def ready(self, running_packs: Collection[Pack]) -> deque[Pack]:
        """Return the queue of packs that may start while `running_packs` run."""
        if any(pack.alone for pack in running_packs):
            return deque()
        if self.shared_packs:
            return self.shared_packs
        return deque() if running_packs else self._lone_packs


def pack(
    trials: Sequence[PlannedTrial],
    *,
    slots: int,
    seconds_per_trial: float,
    at_once: Callable[[str], int] = lambda _: 1,
) -> list[Pack]:
    """Group trials into packs; trials that can run together as one model come first.

    `slots` packs run at a time. `at_once` returns, for a trial id, how many trials may run as one
    model.
    """
    groups: dict[tuple[Hashable, int], list[PlannedTrial]] = {}
    single_trials: list[PlannedTrial] = []
    for trial in trials:
        limit = at_once(trial.trial_id)
        key = stack_key(trial.validated) if limit > 1 else None
        (single_trials if key is None else groups.setdefault((key, limit), [])).append(trial)
    packs = []
    for (_, limit), mates in groups.items():
        # Each slot gets trials if there are enough.
        size = min(limit, ceil(len(mates) / slots))
        packs += _cut(mates, size, at_once=size)
    size = pack_size(len(single_trials), slots=slots, seconds_per_trial=seconds_per_trial)
    return packs + _cut(single_trials, size)


def _cut(trials: Sequence[PlannedTrial], size: int, at_once: int = 1) -> list[Pack]:
    starts = range(0, len(trials), size)
    return [Pack(tuple(trials[start : start + size]), at_once=at_once) for start in starts]


def pack_size(trials: int, *, slots: int, seconds_per_trial: float) -> int:
    """Return the number of trials in a pack: about 10 s of work, at most 100 trials."""
    seconds = max(seconds_per_trial, PACK_S / MAX_TRIALS)
    balanced_size = max(ceil(trials / (PACKS_PER_SLOT * slots)), ceil(MIN_PACK_S / seconds))
    return max(1, min(round(PACK_S / seconds), balanced_size))
