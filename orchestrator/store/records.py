"""Plain data of the store."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Field

from orchestrator.words import file_name
from trainables.config import AnyConfig, read_config

TrialState = Literal["planned", "running", "done", "diverged", "failed", "pruned"]
STATES: tuple[TrialState, ...] = ("planned", "running", "done", "diverged", "failed", "pruned")
OPEN: tuple[TrialState, ...] = ("planned", "running")
LOST: tuple[TrialState, ...] = ("failed", "diverged")
"""States without a usable result. A diverged trial would diverge again."""
COMPLETE: tuple[TrialState, ...] = ("done", "pruned")
"""States with measurements, or after an early stop on purpose."""
ENDED: tuple[TrialState, ...] = (*COMPLETE, *LOST)

Stage = Literal["stage1", "stage2", "final"]
"""Stages of a tuning: grid, search, and best settings with new seeds."""


@dataclass(frozen=True, kw_only=True)
class StudyKey:
    """A study variant: one scale, one corpus, one set of overrides."""

    study: str
    scale: str
    corpus: str
    overrides: str = "{}"
    """Canonical JSON of the `--set` options, a `--search` other than the default, and the user's
    inputs ("--contexts", "--benchmarks"). Several values of an option are a list."""

    @property
    def variant(self) -> str:
        """Unique folder name, such as "gss_grid-quick-ptb"."""
        name = f"{self.study}-{self.scale}-{self.corpus}"
        if self.overrides != "{}":
            name += (
                "-" + hashlib.sha256(self.overrides.encode(errors="surrogatepass")).hexdigest()[:8]
            )
        return file_name(name)


@dataclass(frozen=True, kw_only=True)
class Position:
    """Position of a trial in a tuning."""

    side: str
    stage: Stage
    number: int | None = None
    """Trial number, from 1, on this side of the comparison; only in stage 2."""


@dataclass(frozen=True, kw_only=True)
class PlannedTrial:
    """A trial's id, name and config."""

    trial_id: str
    name: str
    """Readable name, such as "gss c=-1.5 k=2.5"."""
    config: dict[str, Any]
    """The complete resolved config as JSON data."""
    position: Annotated[
        Position | None, Field(validation_alias=AliasChoices("position", "place"))
    ] = None
    """Files of earlier versions call it `place`."""

    @classmethod
    def of(cls, config: AnyConfig, name: str, position: Position | None = None) -> PlannedTrial:
        """Return the trial of a config that is already validated."""
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
    """A trial's row in the store."""

    state: TrialState
    attempt: int
    """Number of claims; 0 before the first."""
    owner: str | None
    lease_until: datetime | None
    started_at: datetime | None
    """Time of the first claim."""
    ended_at: datetime | None
    cause: str | None
    environment: dict[str, str]
    """Code and package versions, host and device of the recorded attempt; empty before the trial's
    end."""

    def planned(self) -> PlannedTrial:
        """Return the trial without its progress."""
        return PlannedTrial(
            trial_id=self.trial_id, name=self.name, config=self.config, position=self.position
        )


@dataclass(frozen=True, kw_only=True)
class StudySummary:
    """A variant's trial counts by state."""

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
    valid_loss: float | None
    """Validation loss after `epoch`, in nats per token."""
    epoch_count: int | None
    alive: bool
    """The owner's lease has not run out."""


@dataclass(frozen=True)
class Attempt:
    """One worker's attempt at a trial."""

    number: int
    host: str
    """Host and GPU, if any: "host, GPU 3"."""
    started_at: datetime
    ended_at: datetime | None
    cause: str | None
    """Why the attempt ended without a result."""


@dataclass(frozen=True, kw_only=True)
class LostTrial:
    """A failed or diverged trial."""

    trial_id: str
    name: str
    key: StudyKey
    state: TrialState
    cause: str | None


@dataclass(frozen=True, kw_only=True)
class Requests:
    """Stop requests since a sweep began."""

    stop_study: bool
    stop_trials: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """Code, packages and host of a run."""

    code_version: str
    packages: dict[str, str]
    host: str
    device: str
    corpus_sha256: str
