"""Input and output of `run_trials`, importable without Ray."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from orchestrator.cluster import RunOptions
from orchestrator.store import Store, StudyKey
from orchestrator.watch import Listener
from orchestrator.worker import TrialFunctions
from trainables.corpora import CorpusIdentity

if TYPE_CHECKING:
    from orchestrator.plan import Tuner

POLL_S = 2.0
"""Interval of queries for changes by other processes."""


@dataclass(frozen=True, kw_only=True)
class StudyWork:
    """Settings of a study's run."""

    store: Store
    run_id: int
    options: RunOptions
    seconds_per_trial: float
    trials_at_once: int = 1
    """Limit on similar trials that run as one model."""
    listener: Listener = field(default_factory=Listener)
    study: StudyKey | None = None
    """Study that labels metrics and receives stop requests, if any."""
    corpus: CorpusIdentity | None = None
    measurements: tuple[str, ...] = ()
    """Measurements to take of every trial: names with versions, e.g. "spectrum@1"."""
    unmeasured: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Measurements to take of done trials, by trial id. Other trials are trained."""
    source: Tuner | None = None
    functions: TrialFunctions = field(default_factory=TrialFunctions)


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """Result of a sweep; outcomes are in the store."""

    interrupted: bool = False
    """True after any signal. Trials that were running are planned again."""
    measurement_failures: Mapping[str, str] = field(default_factory=dict)
    """Causes of failure, by trial id."""
