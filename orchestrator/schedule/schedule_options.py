"""What a sweep is asked to do and what it answers: plain data around `run_trials`, without Ray."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.storage.data_folder import DataFolder
from orchestrator.storage.mirror import Mirror
from orchestrator.store.records import StudyKey
from trainables.corpora import CorpusIdentity
from trainables.runtime import Runtime

PROCESS_DIED = "its process died (killed by a signal, out of memory, or left by an exit call)"
LOW_MEMORY = "its process was ended because the machine ran low on memory"
MACHINE_LEFT = "its machine left the cluster"
"""Why a worker ended without an answer."""


@dataclass(frozen=True, kw_only=True)
class ScheduleOptions:
    """How and where trials run. Nothing here changes a result."""

    storage: Path
    """Root of the trial folders; absolute, and the same folder on every machine of the cluster, or with a `mirror`
    the driver's copy."""
    runtime: Runtime
    measurements: tuple[str, ...]
    """Names with versions, for example "spectrum@1"."""
    seconds_per_trial: float
    """Estimate, for the size of packs."""
    study: StudyKey | None = None
    """Whose trials they are, for those who watch; None tells nobody."""
    corpus: CorpusIdentity | None = None
    """What trials read; with it, what memory they need is known."""
    address: str | None = None
    """Of a running Ray cluster, "host:port" or "auto"; None starts Ray on this machine."""
    gpus_per_trial: float = 0.0
    """0, a fraction of one GPU, or 1: a model trains on one GPU."""
    max_concurrent: int | None = None
    """At most so many packs at the same time; None: as many as fit."""
    mirror: Mirror | None = None
    """The object store that trials are kept in."""
    data: DataFolder | None = None
    """The object store that corpora lie in."""
    max_attempts: int = 2
    """How often a trial may be started before a process death counts as its failure."""


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """How a sweep went; what became of its trials is in the store."""

    interrupted: bool = False
    """True where a signal came, whenever; what was running then is planned again."""


@dataclass(frozen=True, kw_only=True)
class LaterSummary:
    """How later measurements went; what was measured is in the store."""

    interrupted: bool = False
    causes: Mapping[str, str] = field(default_factory=dict)
    """By trial id, why a trial could not be measured."""
