"""What a sweep is asked to do and what it answers: plain data around `orchestrator.schedule`, without Ray."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.store.records import TrialState
from trainables.runtime import Runtime


@dataclass(frozen=True, kw_only=True)
class ScheduleOptions:
    """How and where trials run. Nothing here changes a result."""

    storage: Path
    """Root of the trial folders; absolute, and the same folder on every machine of the cluster."""
    runtime: Runtime
    measurements: tuple[str, ...]
    """Names with versions, for example "spectrum@1"."""
    seconds_per_trial: float
    """Estimate, for the size of packs."""
    address: str | None = None
    """Of a running Ray cluster, "host:port" or "auto"; None starts Ray on this machine."""
    gpus_per_trial: float = 0.0
    """0, a fraction of one GPU, or a whole number of them."""
    max_concurrent: int | None = None
    """At most so many packs at the same time; None: as many as fit."""
    max_attempts: int = 2
    """How often a trial may be started before a process death counts as its failure."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A trial that failed or diverged, and why."""

    trial_id: str
    name: str
    cause: str


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """How a sweep went: its trials by final state, those that went wrong with their causes."""

    counts: dict[TrialState, int] = field(default_factory=dict)
    """Of the trials handed over, those that ended, whoever ran them."""
    failures: tuple[Failure, ...] = ()
    interrupted: bool = False
    """True where a signal ended the sweep early; what was running is planned again."""
    seconds: float = 0.0
