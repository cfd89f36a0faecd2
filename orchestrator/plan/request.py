"""What a user asks of the plan of a study."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from orchestrator.variants import Settings, UserInputs, Variant, other_model
from trainables.config import ContextsFile
from trainables.corpora import BenchmarkFolder

Search = Literal["tpe", "random", "grid"]
DEFAULT_SEARCH: Search = "tpe"


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """Everything beside study, scale and corpus that decides which trials a plan has."""

    data_dir: Path | None = None
    """Folder of corpora and benchmarks; None for the default."""
    settings: Settings = field(default_factory=dict)
    inputs: UserInputs = field(default_factory=UserInputs)
    search: Search | None = None
    """How a tuned study picks the trials of its stage 2; None for the default."""
    budget: int | None = None
    """Trials of stage 2 for each side of a tuned study."""
    seeds: int | None = None
    """Seeds of each setting; None leaves that to the study."""
    all_trials: bool = False
    """Whether the trials that the scale leaves out are planned too."""
    model: str | None = None
    """Model in place of the study's own, "lstm" or "transformer"."""

    @property
    def variant(self) -> Variant:
        """The variant of the study. Raises UserError for an unknown model."""
        return Variant(
            settings=self.settings,
            model=other_model(self.model),
            search=None if self.search == DEFAULT_SEARCH else self.search,
            contexts=_tagged(self.inputs.contexts),
            benchmarks=_tagged(self.inputs.benchmarks),
        )


def _tagged(given: ContextsFile | BenchmarkFolder | None) -> str:
    return "" if given is None else f"{given.name} {given.tag}"
