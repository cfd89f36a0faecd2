"""Rounds of a test of chance: a sweep that was disturbed, judged by one that was not."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.typed_sweep import STUDY, TRIALS, Typed, TypedSweep
from trainables.errors import UserError
from trainables.trial_folder import EpochMetrics

SEED = int(os.environ.get("CHAOS_SEED", random.randrange(10**6)))
"""Of every test of chance here; the report of a failed one shows it."""
OPTIONS = ("--set", "training.epochs=4")
QUIET_S = 10.0
"""What an undisturbed sweep takes where nothing else runs. Where it takes longer, so may what a
promise is about."""
MOST_SLOWNESS = 4.0
LIMIT_S = 90.0
"""A command that has not ended so long after a kill hangs."""


Keep = Callable[[str, Any], None]
"""Keeps a round of the check with this name, under `make chaos`."""


@dataclass(frozen=True, kw_only=True)
class Undisturbed:
    """A sweep that nobody disturbed, and what it came to."""

    storage: Path
    table: list[dict[str, str]]
    seconds: float

    @property
    def slowness(self) -> float:
        """By how much this machine is slower than a quiet one, within bounds: a slow program is no
        slow machine."""
        return min(max(1.0, self.seconds / QUIET_S), MOST_SLOWNESS)

    @property
    def limit_s(self) -> float:
        """For one command after a kill."""
        return LIMIT_S * self.slowness


@dataclass
class Round:
    """One kill and what became of it."""

    kind: str
    slowness: float
    call: int = 1
    """At which of a process' calls of a named step the kill came."""
    moment_s: float = 0.0
    ended_s: float | None = None
    """From the kill to the end of the command under way; None: it hung."""
    commands: int = 1
    went_on: int = 0
    """Trials that had a checkpoint when the command was typed again."""
    claimed_again: int = 0
    """How often trials were claimed after their first time."""
    troubles: list[str] = field(default_factory=list)


def undisturbed_sweep(
    folder: Path, *, study: str = STUDY, storage: Path | None = None
) -> Undisturbed:
    """Run the sweep from its start, or from what the storage has; the storage stays."""
    with TypedSweep(folder, *OPTIONS, study=study, storage=storage) as sweep:
        typed = sweep.type()
        assert typed.status(600) == 0, typed.text
        seconds = time.monotonic() - typed.start_s
        return Undisturbed(storage=sweep.storage, table=sweep.table(), seconds=seconds)


def judge(part: Round, sweep: TypedSweep, typed: Typed, undisturbed: Undisturbed) -> None:
    """What became of a command in which something was just killed: typed again where it has to be,
    which is once, and once more when all is done."""
    killed_s = time.monotonic()
    status = typed.status(undisturbed.limit_s)
    if status is None:
        part.troubles.append(f"hung: {typed.text[-300:]}")
        sweep.kill_all()
    else:
        part.ended_s = time.monotonic() - killed_s
    part.troubles += typed.tracebacks()
    checkpoints: dict[str, list[EpochMetrics]] = {}
    if status != 0:
        part.commands += 1
        checkpoints = sweep.checkpoints()
        part.went_on = len(checkpoints)
        part.troubles += sweep.type().troubles(undisturbed.limit_s)
    part.troubles += sweep.troubles(undisturbed.table, undisturbed.limit_s)
    try:
        part.troubles += sweep.begun_anew(checkpoints)
        part.claimed_again = sum(sweep.claims().values()) - TRIALS
    except (UserError, IndexError) as error:
        part.troubles.append(f"no store: {error}")
