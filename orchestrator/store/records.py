"""Data classes that the store's methods take and return."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Annotated, Any, Literal, get_args

from pydantic import AliasChoices, Field

from orchestrator.words import file_name
from trainables.config import AnyConfig, read_config

TrialState = Literal["planned", "running", "done", "diverged", "failed", "pruned"]
STATES: tuple[TrialState, ...] = get_args(TrialState)
OPEN: tuple[TrialState, ...] = ("planned", "running")
LOST: tuple[TrialState, ...] = ("failed", "diverged")
"""States of trials that ended without a usable result."""
COMPLETE: tuple[TrialState, ...] = ("done", "pruned")
"""States of trials that need no further run: done, or stopped early on purpose."""
ENDED: tuple[TrialState, ...] = (*COMPLETE, *LOST)

Stage = Literal["stage1", "stage2", "final"]
"""Stages of hyperparameter tuning: a grid, then a search, then the best settings with new seeds."""


@dataclass(frozen=True, kw_only=True)
class StudyKey:
    """A study variant: a study at one scale, on one corpus, with one set of overrides."""

    study: str
    scale: str
    corpus: str
    overrides: str = "{}"
    """Canonical JSON of the options that change the study: `--set`, `--search` if not the default,
    `--contexts` and `--benchmarks`. An option with several values is a list."""

    @property
    def variant(self) -> str:
        """Unique folder name of this variant, such as "gss_grid-quick-ptb"."""
        name = f"{self.study}-{self.scale}-{self.corpus}"
        if self.overrides != "{}":
            name += (
                "-" + hashlib.sha256(self.overrides.encode(errors="surrogatepass")).hexdigest()[:8]
            )
        return file_name(name)


@dataclass(frozen=True, kw_only=True)
class Position:
    """Side of the comparison, stage and number of a trial in a hyperparameter tuning."""

    side: str
    stage: Stage
    number: int | None = None
    """Number of the trial within its side, from 1; None outside stage 2."""


@dataclass(frozen=True, kw_only=True)
class PlannedTrial:
    """A trial's id, name and config."""

    trial_id: str
    name: str
    """Readable name, such as "gss c=-1.5 k=2.5"."""
    config: dict[str, Any]
    """The complete config, including defaults, as JSON data."""
    # Study files of earlier versions call it `place`.
    position: Annotated[
        Position | None, Field(validation_alias=AliasChoices("position", "place"))
    ] = None

    @classmethod
    def of(cls, config: AnyConfig, name: str, position: Position | None = None) -> PlannedTrial:
        """Return a planned trial with this validated config."""
        trial = PlannedTrial(
            trial_id=config.trial_id,
            name=name,
            config=config.model_dump(mode="json"),
            position=position,
        )
        vars(trial)["validated"] = config
        return trial

    @cached_property
    def validated(self) -> AnyConfig:
        """The validated config."""
        return read_config(self.config)


@dataclass(frozen=True, kw_only=True)
class TrialRow(PlannedTrial):
    """A planned trial with its progress, as read from the store."""

    state: TrialState
    attempt: int
    """How often drivers have claimed the trial."""
    owner: str | None
    lease_until: datetime | None
    started_at: datetime | None
    """Time of the first claim."""
    ended_at: datetime | None
    cause: str | None
    environment: dict[str, str]
    """Versions, host and device of the attempt that ended the trial; empty until then."""


@dataclass(frozen=True, kw_only=True)
class StudySummary:
    """A study variant with its number of trials in each state."""

    key: StudyKey
    planned_at: datetime
    counts: dict[TrialState, int]


@dataclass(frozen=True, kw_only=True)
class RunningTrial:
    """A claimed trial of a study."""

    trial_id: str
    name: str
    key: StudyKey
    owner: str
    host: str | None
    """Host and GPU; None before a worker has started the trial."""
    attempt: int
    epoch: int | None
    """Last finished epoch."""
    metrics: Mapping[str, float]
    """Metrics after `epoch`."""
    epoch_count: int | None
    alive: bool
    """True until the owner's lease runs out."""

    @property
    def has_driver(self) -> bool:
        """False for a trial of a worker without a driver, whose name has no colon."""
        return ":" in self.owner


@dataclass(frozen=True)
class Attempt:
    """One worker's attempt at a trial."""

    number: int
    host: str
    started_at: datetime
    ended_at: datetime | None
    cause: str | None


@dataclass(frozen=True, kw_only=True)
class LostTrial:
    """A failed or diverged trial."""

    trial_id: str
    name: str
    key: StudyKey
    state: TrialState
    cause: str | None
    host: str | None
    """Host and GPU of the last attempt."""


@dataclass(frozen=True, kw_only=True)
class Requests:
    """Requests to stop the study or single trials, made since the run began."""

    stop_study: bool
    stop_trials: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """Code version, package versions and host of one run of a study."""

    code_version: str
    packages: dict[str, str]
    host: str
    device: str
    corpus_sha256: str
