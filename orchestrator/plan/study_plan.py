"""Plan the trials of a study at one scale on one corpus. Imports neither torch nor Ray."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from orchestrator.plan.checks import (
    require_different,
    require_groups,
    require_names,
    require_text,
)
from orchestrator.plan.request import PlanRequest
from orchestrator.plan.study_trials import groups_by_written, named_trials, tuning_plan
from orchestrator.plan.texts import text_of
from orchestrator.plan.tuning.tuning_plan import TuningPlan
from orchestrator.store import PlannedTrial, StudyKey
from orchestrator.variants import UserInputs, distinct_settings
from search_spaces.model_kinds import with_model
from search_spaces.scales import Scale
from search_spaces.study import Study, group_of
from trainables.config import CorpusConfig, LanguageTrialConfig
from trainables.corpora import DEFAULT_DATA_DIR, NO_TEXT, CorpusIdentity, identity, resolve_argument
from trainables.errors import UserError


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Trials of one study variant."""

    study: Study
    """The study as its file defines it, without `--model`."""
    scale: Scale
    corpus: CorpusIdentity
    data_dir: Path | None
    """Folder of the corpus; None for a built-in one."""
    benchmarks_dir: Path
    """Parent folder of the word-similarity benchmarks. It may not exist."""
    key: StudyKey
    measurements: tuple[str, ...]
    """The study's measurements, with the user's inputs in place of published ones."""
    inputs: UserInputs
    trials: tuple[PlannedTrial, ...]
    """Planned trials. For a tuned study, only those that need no earlier result."""
    seeds: int = 1
    settings: int = 0
    """Number of settings, including those that the scale omits; 0 if the study tunes."""
    tuning: TuningPlan | None = None

    @property
    def extent(self) -> str:
        """Return the planned part of the study: "4 of 9 settings, 3 seeds of each setting".

        Returns "" for all settings with one seed.
        """
        planned = len(distinct_settings(trial.validated for trial in self.trials))
        settings = f"{planned} of {self.settings} settings" if planned < self.settings else ""
        seeds = f"{self.seeds} seeds of each setting" if self.seeds > 1 else ""
        return ", ".join(filter(None, (settings, seeds)))

    @property
    def total(self) -> int:
        """Return the number of trials, including those that a tuning adds later."""
        return len(self.trials) if self.tuning is None else self.tuning.total


def make_plan(study: Study, scale: Scale, corpus: str, request: PlanRequest | None = None) -> Plan:
    """Return the study's plan. Raises UserError for an invalid study, corpus or setting."""
    request = request or PlanRequest()
    measurements, variant = request.inputs.measurements(study), request.variant
    planned_study = study if request.model is None else with_model(study, request.model)
    text, data_dir = _text(study, corpus, request.data_dir)
    default_dir = (request.data_dir or DEFAULT_DATA_DIR).resolve()
    content = CorpusConfig(name=text.name, sha256=text.sha256)
    tuning, seeds, settings = tuning_plan(planned_study, scale, content, request), 1, 0
    if tuning is not None:
        trials = tuple(tuning.certain())
    else:
        named, seeds, settings = named_trials(planned_study, scale, content, request)
        trials = tuple(PlannedTrial.of(config, name) for name, config in named)
    configs = [trial.validated for trial in trials]
    for config in configs:
        if isinstance(config, LanguageTrialConfig):
            require_text(config, text_of(config, text))
    cure = "Drop the --set of a key that distinguishes them." if request.settings else "Drop one."
    require_different(study, trials, cure=cure)
    require_names(study, configs)
    if tuning is None:
        groups = {group_of(trial.name) for trial in trials}
        require_groups(study, groups, lambda: groups_by_written(planned_study, scale, content))
    return Plan(
        study=study,
        scale=scale,
        corpus=text,
        data_dir=default_dir if study.is_own else data_dir,
        benchmarks_dir=default_dir,
        key=StudyKey(study=study.name, scale=scale.name, corpus=text.name, overrides=variant.text),
        measurements=measurements,
        inputs=request.inputs,
        trials=trials,
        seeds=seeds,
        settings=settings,
        tuning=tuning,
    )


def _text(study: Study, corpus: str, data_dir: Path | None) -> tuple[CorpusIdentity, Path | None]:
    if study.reads_text:
        name, data_dir = resolve_argument(corpus, data_dir)
        return identity(name, data_dir=data_dir), data_dir
    if corpus == NO_TEXT.name:
        return NO_TEXT, None
    if study.always_reads:
        raise UserError(
            f"--corpus: {study.name} always reads {' and '.join(study.always_reads)}. Leave it "
            f"out, and name their folder with --data-dir."
        )
    raise UserError(f"--corpus: {study.name} reads no text. Leave it out.")
