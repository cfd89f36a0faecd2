"""The studies and corpora that a command plans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from orchestrator.plan.request import PlanRequest
from orchestrator.plan.study_trials import takes_seeds
from search_spaces.catalog import ALL, NAMES, load_study
from search_spaces.scales import Scale
from search_spaces.study import Study
from trainables.corpora import NO_TEXT
from trainables.errors import UserError


def studies_of(
    argument: str, scale_name: str | None, corpora: Sequence[str] | None, request: PlanRequest
) -> Iterator[tuple[Study, Scale, str, PlanRequest]]:
    """Yield each study that `argument` names, once per corpus, with its scale and plan request."""
    if argument == ALL and request.model is not None:
        raise UserError(
            "--model: not every study has language models. Name one study instead of all."
        )
    for name in NAMES if argument == ALL else (argument,):
        study, study_request, study_corpora = load_study(name), request, corpora
        if argument == ALL:
            study_request = _study_request(request, study)
            study_corpora = corpora if study.reads_text else None
        # The study's own method is no variant of the study.
        if study.tuning is not None and request.search == study.tuning.method:
            study_request = replace(study_request, search=None)
        scale = study.scale(scale_name)
        for corpus in dict.fromkeys(study_corpora or default_corpora(study, scale)):
            yield study, scale, corpus, study_request


def default_corpora(study: Study, scale: Scale) -> tuple[str, ...]:
    """Return the built-in text at scales smoke and quick, else the paper's corpora."""
    if not study.reads_text:
        return (NO_TEXT.name,)
    return ("pydocs",) if scale.name in ("smoke", "quick") else study.corpora or ("ptb",)


def _study_request(request: PlanRequest, study: Study) -> PlanRequest:
    is_tuned = study.tuning is not None
    return replace(
        request,
        inputs=request.inputs.for_study(study),
        search=request.search if is_tuned else None,
        budget=request.budget if is_tuned else None,
        all_trials=request.all_trials and not is_tuned,
        seeds=None if request.seeds is None or not takes_seeds(study) else request.seeds,
    )
