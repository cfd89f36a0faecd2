"""Kinds of questions that a study can ask, and the functions that answer them.

A new kind needs a request in search_spaces/analyses.py (laws: laws.py), numbers in
orchestrator/analysis, a section in orchestrator/report/sections, and an entry of `QUESTIONS`. An
analysis function in a study's own file needs no such parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from orchestrator import analysis
from orchestrator.report.sections import (
    audit,
    confounding,
    correlation,
    custom,
    extrapolation,
    grid,
    groups,
    jacobians,
    lines,
    power_laws,
    predictions,
    press_noise,
    rank_over_training,
    similarity,
    spectra,
    swept,
    thresholds,
    true_rank,
)
from orchestrator.report.sections.section import Section
from orchestrator.store import StudyKey
from orchestrator.variants import Variant
from search_spaces import analyses, laws
from search_spaces.analyses import Analysis
from search_spaces.study import Study
from trainables.config import is_generated
from trainables.trial_folder import Epoch


@dataclass(frozen=True, kw_only=True)
class StudyResults:
    """Everything that the answers to a study's questions are made from."""

    study: Study
    key: StudyKey
    frame: pd.DataFrame
    """Result of `FlatResults.frame`: one row per trial."""
    spectra: Mapping[str, NDArray[np.float64]]
    """Trial id -> singular values, descending."""
    epochs: Mapping[str, Sequence[Epoch]]
    """Trial id -> epochs in order."""

    @property
    def variant(self) -> Variant:
        """Return the user's changes to the study."""
        return Variant.read(self.key.overrides)

    @property
    def corpus(self) -> str:
        """Return the corpus' name."""
        return self.key.corpus

    @property
    def grids(self) -> list[analyses.GridMap]:
        """Return the study's GridMap requests."""
        return [request for request in self.study.analyses if isinstance(request, analyses.GridMap)]


Request = Analysis | Callable[[Any], Any]
Numbers = Callable[[StudyResults, Any], Any]
"""Function that computes a request's numbers from results; None or empty if they give no answer."""


def _of_trials(numbers: Callable[[pd.DataFrame, Any], Any]) -> Numbers:
    return lambda results, request: numbers(analysis.with_layer_classes(results.frame), request)


QUESTIONS: Mapping[type[Analysis], tuple[Numbers, Callable[[Any], Section]]] = {
    analyses.Correlation: (
        lambda r, q: analysis.correlation_numbers(
            r.frame,
            q,
            corpus=r.corpus,
            scale=r.key.scale,
            grid=next(((one.row, one.column) for one in r.grids), ()),
        ),
        correlation.correlation_section,
    ),
    analyses.GridMap: (_of_trials(analysis.grid_numbers), grid.grid_section),
    analyses.GroupTable: (
        lambda r, q: analysis.group_numbers(r.frame, q, corpus=r.corpus, scale=r.key.scale),
        groups.group_section,
    ),
    analyses.Differences: (
        lambda r, q: analysis.difference_numbers(r.frame, q, corpus=r.corpus, scale=r.key.scale),
        groups.difference_section,
    ),
    analyses.Comparison: (
        lambda r, q: analysis.contrast_numbers(r.frame, q, corpus=r.corpus),
        groups.contrast_section,
    ),
    analyses.Counts: (_of_trials(analysis.count_numbers), groups.count_section),
    analyses.Curves: (
        lambda r, q: analysis.curve_numbers(r.frame, q, corpus=r.corpus),
        lines.curve_section,
    ),
    analyses.Lines: (_of_trials(analysis.line_numbers), lines.line_section),
    analyses.Predictions: (
        lambda r, q: analysis.prediction_numbers(
            r.frame, q, corpus=r.corpus, tag=r.variant.contexts.rpartition(" ")[2]
        ),
        predictions.prediction_section,
    ),
    analyses.Similarity: (
        lambda r, q: analysis.similarity_numbers(
            r.frame, q, corpus=r.corpus, tag=r.variant.benchmarks.rpartition(" ")[2]
        ),
        similarity.similarity_section,
    ),
    analyses.Tuned: (
        lambda r, q: analysis.tuned_numbers(r.frame, *[q.goal] * q.is_own),
        groups.tuned_section,
    ),
    analyses.TrueRank: (_of_trials(analysis.true_rank_numbers), true_rank.true_rank_section),
    analyses.LossByRank: (lambda r, _: analysis.kl_curves(r.frame), spectra.kl_curve_section),
    analyses.RankOverTraining: (
        lambda r, q: analysis.rank_training_numbers(
            r.frame, r.epochs, q, colours=[one.column for one in r.grids]
        ),
        rank_over_training.rank_training_section,
    ),
    laws.PowerLaw: (_of_trials(analysis.power_law_numbers), power_laws.power_law_section),
    laws.Extrapolation: (
        _of_trials(analysis.extrapolation_numbers),
        extrapolation.extrapolation_section,
    ),
    laws.Threshold: (_of_trials(analysis.threshold_numbers), thresholds.threshold_section),
    analyses.PartialCorrelations: (
        _of_trials(analysis.confounding_numbers),
        confounding.confounding_section,
    ),
    analyses.Spectra: (
        lambda r, _: analysis.trial_spectra(r.frame, r.spectra, by_group=False),
        spectra.spectra_section,
    ),
    analyses.GroupSpectra: (
        lambda r, _: analysis.trial_spectra(r.frame, r.spectra, by_group=True),
        spectra.spectra_section,
    ),
    analyses.JacobianSpectra: (
        lambda r, q: analysis.jacobian_numbers(r.frame, q, spectra=r.spectra),
        jacobians.jacobian_section,
    ),
    analyses.PressNoise: (
        lambda r, _: analysis.press_noise_numbers(r.frame),
        press_noise.press_noise_section,
    ),
    analysis.BySetting: (_of_trials(analysis.swept_numbers), swept.swept_section),
    analyses.Audit: (lambda r, _: analysis.audit_numbers(r.frame), audit.audit_section),
}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Answer to one request. A request may be an analysis function in the study's own file."""

    request: Request
    numbers: Any
    section: Section


def answer(results: StudyResults) -> tuple[Answer, ...]:
    """Return the answers in the order of the study's requests.

    Repeated kinds of sections are numbered. If `--set` gave a setting several values, the first
    answers compare these values. After them, every request is answered at each value.
    """
    # No paper has published values for a generated language, and values for other texts do not
    # apply.
    names = list(results.frame["group"])
    study = results.study.with_requests(lambda request: request.with_baselines(names))
    if is_generated(results.corpus):
        study = study.with_requests(lambda request: request.without_published())
    requests = study.analyses
    keys, frame = analysis.swept_settings(results.frame, results.key.overrides)
    if keys:
        by_setting = analysis.by_setting_requests(results.study, keys, frame)
        answers = _answers(replace(results, frame=frame), by_setting)
        at_values = list(analysis.at_each_value(frame, keys))
        numbers_at = [
            _numbers(replace(results, frame=of_value), requests) for _, of_value in at_values
        ]
        # A question's comparisons at all values are one family of tests.
        adjusted = [analysis.adjust_together(numbers) for numbers in zip(*numbers_at, strict=True)]
        for index, (values, of_value) in enumerate(at_values):
            numbers = [of_request[index] for of_request in adjusted]
            answers += [
                replace(answered, section=swept.section_at(answered.section, values))
                for answered in _sections(requests, numbers, of_value)
            ]
    else:
        answers = _answers(results, requests)
    if not any(isinstance(request, analyses.Spectra) for request in requests):
        answers += _answers(results, [analyses.Spectra()])
    kinds: Counter[str] = Counter()
    for index, answered in enumerate(answers):
        kinds[answered.section.kind] += 1
        if (number := kinds[answered.section.kind]) > 1:
            answers[index] = replace(answered, section=answered.section.numbered(number))
    return tuple(answers)


def _answers(results: StudyResults, requests: Sequence[Request]) -> list[Answer]:
    return list(_sections(requests, _numbers(results, requests), results.frame))


def _numbers(results: StudyResults, requests: Sequence[Request]) -> list[Any]:
    return [
        QUESTIONS[type(request)][0](results, request) if isinstance(request, Analysis) else request
        for request in requests
    ]


def _sections(
    requests: Sequence[Request], numbers: Sequence[Any], frame: pd.DataFrame
) -> Iterator[Answer]:
    for request, answered in zip(requests, numbers, strict=True):
        if not isinstance(request, Analysis):
            section = custom.custom_section(request, frame)
        elif answered is None or (isinstance(answered, Sized) and not len(answered)):
            continue
        else:
            section = QUESTIONS[type(request)][1](answered)
            findings = (replace(finding, goal=request.goal) for finding in section.findings)
            section = replace(section, findings=tuple(findings))
        if section.kind:
            yield Answer(request=request, numbers=answered, section=section)
