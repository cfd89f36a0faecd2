"""What a user asks of the plan of a study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.plan.tuning.tuning_plan import DEFAULT_SEARCH
from orchestrator.variants import UserInputs, model_override
from search_spaces.study import Study


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """What else is typed that decides about the trials of a study."""

    data_dir: Path | None = None
    """Where corpora and benchmarks lie; None for the default."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """Of `--set`, by dotted key."""
    inputs: UserInputs = field(default_factory=UserInputs)
    search: str | None = None
    """How a tuned study picks the trials of its stage 2; None takes the default."""
    budget: int | None = None
    """How many it picks for each side."""
    seeds: int | None = None
    """How many each setting gets; None leaves that to the study."""
    all_trials: bool = False
    """Whether every trial of the study is planned, also those that the scale leaves out."""
    model: str | None = None
    """The model in place of the study's own, "lstm" or "transformer"; None leaves that to the
    study."""
    argument: str | None = None
    """The study as it was typed, where that is not its name."""


def variant_overrides(study: Study, request: PlanRequest) -> dict[str, Any]:
    """What makes this another variant of the study, for `StudyKey.overrides`: another way to
    search, too; a larger budget, or more seeds, is more of the same one. Raises UserError for a
    model that there is not."""
    searched = (
        {}
        if study.tuning is None or request.search in (None, DEFAULT_SEARCH)
        else {"search": request.search}
    )
    return {
        **request.overrides,
        **request.inputs.overrides,
        **searched,
        **model_override(request.model),
    }
