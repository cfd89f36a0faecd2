"""What a user asks of the plan of a study."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from orchestrator.plan.study_trials import takes_seeds
from orchestrator.plan.tuning.tuning_plan import DEFAULT_SEARCH
from orchestrator.variants import Settings, UserInputs, Variant, other_model
from search_spaces.catalog import ALL, NAMES, load_study
from search_spaces.scales import Scale
from search_spaces.study import Study
from trainables.config import ContextsFile
from trainables.corpora import NO_TEXT, BenchmarkFolder
from trainables.errors import UserError


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """Everything beside study, scale and corpus that decides which trials a plan has."""

    argument: str | None = None
    """The study as it was typed, if that is not its name."""
    data_dir: Path | None = None
    """Folder of corpora and benchmarks; None for the default."""
    settings: Settings = field(default_factory=dict)
    inputs: UserInputs = field(default_factory=UserInputs)
    search: str | None = None
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

    def for_one_of_all(self, study: Study) -> PlanRequest:
        """Return the request without what the study has no use for, as `all` makes it."""
        tunes = study.tuning is not None
        return replace(
            self,
            inputs=self.inputs.for_study(study),
            search=self.search if tunes else None,
            budget=self.budget if tunes else None,
            all_trials=self.all_trials and not tunes,
            seeds=None if self.seeds is None or not takes_seeds(study) else self.seeds,
        )


def _tagged(given: ContextsFile | BenchmarkFolder | None) -> str:
    return "" if given is None else f"{given.name} {given.tag}"


def studies_of(
    argument: str, scale: Scale, corpora: Sequence[str] | None, request: PlanRequest
) -> Iterator[tuple[Study, str, PlanRequest]]:
    """Yield each study that is meant, with each of its corpora and what is asked of its plan."""
    if argument == ALL and request.model is not None:
        raise UserError(
            "--model is for one study, and not each of all has language models: name one"
        )
    for name in NAMES if argument == ALL else (argument,):
        study, fitting = load_study(name), replace(request, argument=name)
        named = corpora
        if argument == ALL:
            fitting = fitting.for_one_of_all(study)
            named = corpora if study.reads_text else None
        for corpus in dict.fromkeys(named or default_corpora(study, scale)):
            yield study, corpus, fitting


def default_corpora(study: Study, scale: Scale) -> tuple[str, ...]:
    """Where none is named: "none" for a study that reads no text, the built-in text for the small
    machines' scales, else all corpora of the paper."""
    if not study.reads_text:
        return (NO_TEXT.name,)
    return ("pydocs",) if scale.name in ("smoke", "quick") else study.corpora or ("ptb",)
