"""What a study asks the schedule to do and what it answers: plain data around `run_trials`, without
Ray."""

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
"""How often the store is asked what others do."""


@dataclass(frozen=True, kw_only=True)
class StudyWork:
    """What one run of a study has to do beside its trials, and with what."""

    store: Store
    run_id: int
    """Of the run in the store."""
    options: RunOptions
    seconds_per_trial: float
    """Estimate, for the size of packs."""
    trials_at_once: int = 1
    """At most so many trials run at the same time in one worker, if they are of a kind."""
    listener: Listener = field(default_factory=Listener)
    study: StudyKey | None = None
    """Whose trials they are, for those who watch and whose requests to stop are followed; None:
    nobody's."""
    corpus: CorpusIdentity | None = None
    """What trials read; with it, what memory they need is known."""
    measurements: tuple[str, ...] = ()
    """Of every trial, names with versions, for example "spectrum@1"."""
    lacking: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By trial id, the measurements that are taken of trials that are done; all others are
    trained."""
    source: Tuner | None = None
    """Gives further trials as results come in, until it has no more."""
    functions: TrialFunctions = field(default_factory=TrialFunctions)
    """Others are for tests."""


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """How a sweep went; what became of its trials is in the store."""

    interrupted: bool = False
    """True where a signal came, whenever; what was running then is planned again."""
    not_measured: Mapping[str, str] = field(default_factory=dict)
    """By id of a trial that was to be measured and could not be, why."""
