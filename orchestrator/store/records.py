"""The plain data that goes into the store and comes out of it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Literal

from orchestrator.words import file_name
from trainables.config import AnyConfig, read_config

TrialState = Literal["planned", "running", "done", "diverged", "failed", "pruned"]
STATES: tuple[TrialState, ...] = ("planned", "running", "done", "diverged", "failed", "pruned")
OPEN: tuple[TrialState, ...] = ("planned", "running")
LOST: tuple[TrialState, ...] = ("failed", "diverged")
"""Ended without a result that its study can use; a trial that diverged would diverge again."""
COMPLETE: tuple[TrialState, ...] = ("done", "pruned")
"""Ended as a study wants it: with its measurements, or stopped early."""
ENDED: tuple[TrialState, ...] = (*COMPLETE, *LOST)

Stage = Literal["stage1", "stage2", "final"]
"""Of a tuning: a grid, a search, and its best with new seeds."""


@dataclass(frozen=True, kw_only=True)
class StudyKey:
    """One variant of a study: the same study at another scale, corpus or with other overrides is
    another one."""

    study: str
    scale: str
    corpus: str
    overrides: str = "{}"
    """The `--set` options as canonical JSON, several values as a list, with "search" where
    `--search` was not the default, and under "--contexts" and "--benchmarks" what the user
    brought."""

    @property
    def variant(self) -> str:
        """A name for each variant of a study, fit for a folder: "gss_grid-quick-ptb"."""
        name = f"{self.study}-{self.scale}-{self.corpus}"
        if self.overrides != "{}":
            name += (
                "-" + hashlib.sha256(self.overrides.encode(errors="surrogatepass")).hexdigest()[:8]
            )
        return file_name(name)


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where in a tuning a trial stands."""

    side: str
    stage: Stage
    number: int | None = None
    """Of a trial of stage 2: 1 for the side's first."""


@dataclass(frozen=True, kw_only=True)
class PlannedTrial:
    """A trial as the plan has it."""

    trial_id: str
    name: str
    """Short and meaningful to a reader, for example "gss c=-1.5 k=2.5"."""
    config: dict[str, Any]
    """The complete resolved config as JSON data."""
    place: Place | None = None
    """Of a trial of a tuning."""

    @classmethod
    def of(cls, config: AnyConfig, name: str, place: Place | None = None) -> PlannedTrial:
        """The trial of a config that is validated already."""
        trial = PlannedTrial(
            trial_id=config.trial_id, name=name, config=config.model_dump(mode="json"), place=place
        )
        vars(trial)["validated"] = config
        return trial

    @cached_property
    def validated(self) -> AnyConfig:
        """The config, read and validated once."""
        return read_config(self.config)


@dataclass(frozen=True, kw_only=True)
class TrialRow(PlannedTrial):
    """A trial as the store has it."""

    state: TrialState
    attempt: int
    """How often it was claimed; 0 for a trial that never started."""
    owner: str | None
    lease_until: datetime | None
    started_at: datetime | None
    """When it was claimed first."""
    ended_at: datetime | None
    cause: str | None
    environment: dict[str, str]
    """Code and package versions, host and device of the recorded attempt; empty before."""

    def planned(self) -> PlannedTrial:
        """The trial as a plan has it."""
        return PlannedTrial(
            trial_id=self.trial_id, name=self.name, config=self.config, place=self.place
        )


@dataclass(frozen=True, kw_only=True)
class StudySummary:
    """A study variant and how many of its trials are in which state."""

    key: StudyKey
    planned_at: datetime
    counts: dict[TrialState, int]


@dataclass(frozen=True, kw_only=True)
class RunningTrial:
    """A trial that runs or is next on a worker, in one of its studies."""

    trial_id: str
    name: str
    key: StudyKey
    owner: str
    """The machine, process and start of the command that runs it, with colons between."""
    place: str | None
    """Of the worker that is at it, see `Attempt`; None before one has taken it up."""
    attempt: int
    epoch: int | None
    """The last one that ended; None before the first."""
    valid_loss: float | None
    """Of that epoch, in nats per token."""
    epoch_count: int | None
    """Of its config; None where it has no epochs."""
    alive: bool
    """Whether the command that runs it has been heard of lately: its lease has not run out."""


@dataclass(frozen=True)
class Attempt:
    """What a worker made of a trial once."""

    number: int
    place: str
    """The worker's machine, and its GPU where it has one: "host, GPU 3"."""
    started_at: datetime
    ended_at: datetime | None
    """None while it goes on."""
    cause: str | None
    """Of its end without a result, one sentence."""


@dataclass(frozen=True, kw_only=True)
class LostTrial:
    """A trial without a result, in one of its studies."""

    trial_id: str
    name: str
    key: StudyKey
    state: TrialState
    cause: str | None


@dataclass(frozen=True, kw_only=True)
class Requests:
    """What a running sweep should know of what others did since it began."""

    stop_study: bool
    stop_trials: frozenset[str]
    """Trial ids, of any study."""


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """One run of the command: what code and machine the results of that run come from."""

    code_version: str
    packages: dict[str, str]
    host: str
    device: str
    corpus_sha256: str
