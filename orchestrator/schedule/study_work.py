"""What a study asks the schedule to do and what it answers: plain data around `run_trials`, without Ray."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.store.records import StudyKey
from trainables.corpora import CorpusIdentity

PROCESS_DIED = "its process died (killed by a signal, out of memory, or left by an exit call)"
LOW_MEMORY = "its process was ended because the machine ran low on memory"
MACHINE_LEFT = "its machine left the cluster"
"""Why a worker ended without an answer."""


@dataclass(frozen=True, kw_only=True)
class StudyWork:
    """What a study has to do, beside the options of its run."""

    measurements: tuple[str, ...] = ()
    """Names with versions, for example "spectrum@1"."""
    seconds_per_trial: float
    """Estimate, for the size of packs."""
    study: StudyKey | None = None
    """Whose trials they are, for those who watch; None tells nobody."""
    corpus: CorpusIdentity | None = None
    """What trials read; with it, what memory they need is known."""


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
