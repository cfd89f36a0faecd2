"""What driver and worker tell each other, as JSON (Ray moves one string, whatever it holds), and
why a worker ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from pydantic import TypeAdapter

from orchestrator.cluster import RunOptions
from orchestrator.store import PlannedTrial
from trainables.config import Frozen
from trainables.trial_folder import EpochMetrics, TrialOutcome


@dataclass(frozen=True)
class Pack:
    """Trials for one worker, in plan order: to train, or to measure later."""

    trials: tuple[PlannedTrial, ...]
    stop_above: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    """By the ids of trials that a search may stop early: after which epochs, above which validation
    loss in nats per token."""
    lacking: tuple[str, ...] = ()
    """Measurements to take of these trials, which are done; empty where they are trained."""
    alone: bool = False
    """No other pack of the sweep runs meanwhile."""
    at_once: int = 1
    """At most so many of the trials run at the same time, in one process."""


PACK: TypeAdapter[Pack] = TypeAdapter(Pack)


@dataclass(frozen=True)
class Place:
    """What a pack asks of the machine that it runs on."""

    memory_bytes: int
    """0 where that is unknown."""
    not_on: tuple[str, ...]
    """Machines that must not get it, by Ray's ids."""


class Parcel:
    """A pack on its way to a worker. Tune keeps copies of every config for ever: they share one
    text, emptied later.

    It is in this file so that workers import nothing of the driver's.
    """

    def __init__(self, key: str, pack: Pack, place: Place) -> None:
        """`key`: the driver's name for the pack."""
        self.key, self.place, self._text = key, place, PACK.dump_json(pack)

    def open(self) -> Pack:
        """What is to be done."""
        return PACK.validate_json(self._text)

    def empty(self) -> None:
        """Forget the trials."""
        self._text = b""

    def __str__(self) -> str:
        return "trials"

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self


class TrialEvent(Frozen):
    """What a worker tells: a trial was taken up, ended an epoch, met damaged files or ended, or
    that no trial can go on."""

    trial_id: str
    place: str | None = None
    """Where it was taken up: "host, GPU 3"."""
    epoch: EpochMetrics | None = None
    outcome: TrialOutcome | None = None
    note: str | None = None
    """What was damaged, and what follows from it; without a dot."""
    halt: str | None = None
    """What is amiss with the disk or the object store, which any trial would meet, and the cure."""


EVENTS: TypeAdapter[tuple[TrialEvent, ...]] = TypeAdapter(tuple[TrialEvent, ...])
"""Several events in the order in which they happened."""


class EndingKind(StrEnum):
    """What ended a worker before it came to the end of its pack, in one clause."""

    PROCESS_DIED = "its process died (killed by a signal, or left by an exit call)"
    STOOD_STILL = "it stood still"
    OUT_OF_MEMORY = "it ran out of memory"
    LOW_MEMORY = "its process was ended because the machine ran low on memory"
    MACHINE_LEFT = "its machine left the cluster"
    MACHINE_UNFIT = "its machine cannot run the trials"
    ERROR = "its worker ended without reporting it"


@dataclass(frozen=True)
class Ending:
    """Why a worker ended; made where Ray tells it, and nothing else reads Ray's errors."""

    kind: EndingKind
    text: str = ""
    """For the reader; the kind's own clause where nothing more is known."""
    machine: str | None = None
    """The address of the worker's machine, of an unfit one Ray's id; None where that is not
    known."""

    @property
    def cause(self) -> str:
        """The text, or the kind's clause."""
        return self.text or self.kind.value

    @property
    def died(self) -> bool:
        """Whether the process died, or had to end, under the trial that it was at."""
        return self.kind not in (EndingKind.MACHINE_UNFIT, EndingKind.ERROR)

    @property
    def short_of_memory(self) -> bool:
        """Whether there was not enough memory for the trial that it was at."""
        return self.kind in (EndingKind.LOW_MEMORY, EndingKind.OUT_OF_MEMORY)


@dataclass(frozen=True, kw_only=True)
class TrialFunctions:
    """What is done with a trial, as `run_trial` and `measure_kept` of `trainables.trial` do it.
    None: these, imported in the worker so that the driver needs no torch; any other must be
    importable there."""

    run_trial: Callable[..., TrialOutcome] | None = None
    measure_kept: Callable[..., object] | None = None


@dataclass(frozen=True, kw_only=True)
class Job:
    """What is the same for all packs of a sweep."""

    options: RunOptions
    measurements: tuple[str, ...]
    functions: TrialFunctions
