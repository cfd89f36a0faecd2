"""Input and output of `run_trials`, importable without Ray."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from orchestrator.cluster import RunOptions
from orchestrator.store import Store, StudyKey
from orchestrator.watch import Listener
from orchestrator.worker import Job, TrialFunctions
from trainables.corpora import CorpusIdentity

if TYPE_CHECKING:
    from orchestrator.plan import Tuner

POLL_S = 2.0


@dataclass(frozen=True, kw_only=True)
class StudyWork:
    """Input of `run_trials`: the store, the options and what to measure."""

    store: Store
    run_id: int
    options: RunOptions
    seconds_per_trial: float
    trials_at_once: int = 1
    """Maximum number of similar trials that run together as one model."""
    listener: Listener = field(default_factory=Listener)
    study: StudyKey
    corpus: CorpusIdentity | None = None
    measurements: tuple[str, ...] = ()
    """Measurements of every new trial: names with versions, e.g. "spectrum@1"."""
    unmeasured: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Measurements that done trials do not have yet, by trial id. The run's other trials
    are still to be trained."""
    source: Tuner | None = None
    functions: TrialFunctions = field(default_factory=TrialFunctions)

    @property
    def job(self) -> Job:
        """The settings that workers need."""
        return Job(
            options=self.options.for_workers(),
            measurements=self.measurements,
            functions=self.functions,
        )


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """Result of `run_trials`. The outcomes of trials are in the store."""

    interrupted: bool = False
    """True if a signal or a request stopped the run. Unfinished trials are planned again."""
    measurement_failures: Mapping[str, str] = field(default_factory=dict)
    """Reasons why done trials could not be measured, by trial id."""
