"""The user's options for the plan of a study."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from orchestrator.variants import Settings, UserInputs, Variant, other_model
from trainables.config import ContextsFile
from trainables.corpora import BenchmarkFolder

Search = Literal["tpe", "random", "grid"]


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """Options that determine a study's trials, except scale and corpus."""

    data_dir: Path | None = None
    settings: Settings = field(default_factory=dict)
    inputs: UserInputs = field(default_factory=UserInputs)
    search: Search | None = None
    """Method by which a tuned study searches for its best config (stage 2)."""
    budget: int | None = None
    """Number of search trials for each config that the study tunes."""
    seeds: int | None = None
    all_trials: bool = False
    """Also plan the trials that the scale omits."""
    model: str | None = None

    @property
    def variant(self) -> Variant:
        """The variant that these options select. Raises UserError for an unknown model."""
        return Variant(
            settings=self.settings,
            model=other_model(self.model),
            search=self.search,
            contexts=_tagged_name(self.inputs.contexts),
            benchmarks=_tagged_name(self.inputs.benchmarks),
        )


def _tagged_name(user_input: ContextsFile | BenchmarkFolder | None) -> str:
    return "" if user_input is None else f"{user_input.name} {user_input.tag}"
