"""JSON messages between driver and worker, and reasons why workers end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from pydantic import TypeAdapter

from orchestrator.cluster import RunOptions
from orchestrator.store import PlannedTrial
from trainables.config import Frozen
from trainables.trial_folder import AnyEpoch, TrialOutcome


@dataclass(frozen=True)
class Pack:
    """Trials for one worker to train or measure, in plan order."""

    trials: tuple[PlannedTrial, ...]
    stop_above: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    """Validation loss (nats per token) above which a trial stops early, by trial id and epoch."""
    unmeasured: tuple[str, ...] = ()
    """Measurements to take of done trials; empty for training."""
    alone: bool = False
    """True if no other pack of the sweep may run meanwhile."""
    at_once: int = 1
    """Maximum number of trials that run together as one model."""


PACK: TypeAdapter[Pack] = TypeAdapter(Pack)


@dataclass(frozen=True)
class MachineRequest:
    """Memory that a pack needs, and machines that it must not use."""

    memory_bytes: int
    """0 if unknown."""
    excluded_machines: tuple[str, ...]
    """Ray's node ids."""


class Parcel:
    """A pack as JSON text, which Ray Tune carries to a worker."""

    def __init__(self, key: str, pack: Pack, request: MachineRequest) -> None:
        self.key, self.request, self._text = key, request, PACK.dump_json(pack)

    def open(self) -> Pack:
        """Return the pack."""
        return PACK.validate_json(self._text)

    def empty(self) -> None:
        """Free the text."""
        self._text = b""

    def __str__(self) -> str:
        return "trials"

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self  # all copies of Tune's config share the text


class TrialEvent(Frozen):
    """A worker's report of a trial's start, epoch or end, or of trouble with files or storage."""

    trial_id: str
    host: str | None = None
    """Host and GPU: "host, GPU 3"."""
    epoch: AnyEpoch | None = None
    outcome: TrialOutcome | None = None
    is_busy: bool = False
    """A worker without a driver has the trial."""
    note: str | None = None
    """A problem and its consequence, as a sentence without a period."""
    halt: str | None = None
    """A problem of the disk or object store that affects every trial, and its fix."""


EVENTS: TypeAdapter[tuple[TrialEvent, ...]] = TypeAdapter(tuple[TrialEvent, ...])


class EndingKind(StrEnum):
    """Why a worker ended before its pack was finished, as a clause."""

    PROCESS_DIED = "its process died (by a signal or an exit call)"
    STALLED = "it stalled"
    OUT_OF_MEMORY = "it ran out of memory"
    LOW_MEMORY = "Ray killed its process because the machine ran low on memory"
    MACHINE_LEFT = "its machine left the cluster"
    MACHINE_UNFIT = "its machine cannot run the trials"
    ERROR = "its worker ended without a report"


@dataclass(frozen=True)
class Ending:
    """How a worker ended."""

    kind: EndingKind
    text: str = ""
    """A clause that is more specific than the kind's, or empty."""
    machine: str | None = None
    """IP address of the machine, if known. For an unfit machine, Ray's node id."""

    @property
    def cause(self) -> str:
        """The specific clause, or the clause of the kind."""
        return self.text or self.kind.value

    @property
    def died(self) -> bool:
        """True if the process died or was killed in a trial."""
        return self.kind not in (EndingKind.MACHINE_UNFIT, EndingKind.ERROR)

    @property
    def short_of_memory(self) -> bool:
        """True if the trial had too little memory."""
        return self.kind in (EndingKind.LOW_MEMORY, EndingKind.OUT_OF_MEMORY)


ORDERLY_END = Ending(EndingKind.ERROR)
"""Ending of a pack whose worker returned without an error."""


@dataclass(frozen=True, kw_only=True)
class TrialFunctions:
    """Replacements for the functions `run_trial` and `measure_kept` of `trainables.trial`.

    Workers must be able to import the replacements. By default, the worker imports the originals,
    so that the driver needs no torch.
    """

    run_trial: Callable[..., TrialOutcome] | None = None
    measure_kept: Callable[..., object] | None = None


@dataclass(frozen=True, kw_only=True)
class Job:
    """Settings shared by all packs."""

    options: RunOptions
    measurements: tuple[str, ...]
    functions: TrialFunctions
