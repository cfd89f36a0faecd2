"""Everything that a study's results say in numbers: what the terminal prints and the report explains."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, get_args

from orchestrator.analysis.audit import RecomputedNumbers, recomputed_numbers
from orchestrator.analysis.comparison import ComparedCorrelation, correlate
from orchestrator.analysis.contrasts import ContrastNumbers, contrast_numbers
from orchestrator.analysis.counts import CountNumbers, count_numbers
from orchestrator.analysis.frames import FlatResults
from orchestrator.analysis.grid import Grid, lay_out
from orchestrator.analysis.groups import (
    CurveNumbers,
    DifferenceNumbers,
    GroupNumbers,
    curve_numbers,
    difference_numbers,
    group_numbers,
)
from orchestrator.analysis.jacobians import JacobianNumbers, jacobian_numbers
from orchestrator.analysis.lines import LineNumbers, line_numbers
from orchestrator.analysis.paired_contrasts import PairedNumbers, paired_numbers
from orchestrator.analysis.predictions import PredictionNumbers, prediction_numbers
from orchestrator.analysis.press_noise import PressNoiseNumbers, press_noise_numbers
from orchestrator.analysis.similarity import SimilarityNumbers, similarity_numbers
from orchestrator.analysis.true_rank import TrueRankNumbers, true_rank_numbers
from orchestrator.analysis.tuned import TunedNumbers, tuned_numbers
from orchestrator.store.records import LOST, StudyKey, TrialState
from search_spaces.requests import (
    Analysis,
    Comparison,
    Correlation,
    Counts,
    Curves,
    Differences,
    GridMap,
    GroupTable,
    JacobianSpectra,
    Lines,
    PairedComparison,
    Predictions,
    PressNoise,
    Recomputed,
    Similarity,
    TrueRank,
    Tuned,
)
from search_spaces.study import Study
from trainables.config.built_in_corpora import is_generated

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray


Answer = (
    GroupNumbers
    | DifferenceNumbers
    | ContrastNumbers
    | PairedNumbers
    | CountNumbers
    | CurveNumbers
    | LineNumbers
    | PredictionNumbers
    | SimilarityNumbers
    | TunedNumbers
    | JacobianNumbers
    | PressNoiseNumbers
    | RecomputedNumbers
    | TrueRankNumbers
)


@dataclass(frozen=True, kw_only=True)
class Extremes:
    """The least and the greatest value of a metric over the done trials, and whose they are."""

    metric: str
    least: float
    least_name: str
    greatest: float
    greatest_name: str


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """A trial without a result, and why."""

    name: str
    state: TrialState
    cause: str


@dataclass(frozen=True, kw_only=True)
class StudySummaryNumbers:
    """The numbers of one study variant."""

    key: StudyKey
    counts: dict[TrialState, int]
    """Trials in each state, states without a trial left out."""
    seeds: tuple[int, ...]
    """The different seeds of the trials."""
    trials_per_setting: int
    """How many trials share all of their config but the seed, at most."""
    correlations: tuple[ComparedCorrelation, ...]
    grids: tuple[Grid, ...]
    answers: tuple[Answer, ...]
    """To the study's other requests, in its order."""
    extremes: tuple[Extremes, ...]
    """Of each metric that the study's analyses are about."""
    trouble: tuple[Trouble, ...]

    @property
    def trials(self) -> int:
        """All trials of the plan."""
        return sum(self.counts.values())

    @property
    def has_published(self) -> bool:
        """Whether printed values stand beside any of the numbers."""
        beside = [answer.has_published for answer in self.answers]
        return any(beside) or any(line.published for line in self.correlations)

    @property
    def done(self) -> int:
        """Trials with a result."""
        return self.counts.get("done", 0)


def summarise(
    study: Study,
    key: StudyKey,
    results: FlatResults,
    frame: pd.DataFrame,
    spectra: Mapping[str, NDArray[np.float64]] | None = None,
) -> StudySummaryNumbers:
    """Run the study's analyses over `frame`, the data frame of `results`; `spectra` are singular values by trial id."""
    analyses = tuple(map(_without_published, study.analyses)) if is_generated(key.corpus) else study.analyses
    correlations = [request for request in analyses if isinstance(request, Correlation)]
    maps = [request for request in analyses if isinstance(request, GridMap)]
    metrics = dict.fromkeys(
        [name for request in correlations for name in (request.x, request.y)]
        + [name for request in maps for name in request.values]
    )
    states = list(frame["state"])
    return StudySummaryNumbers(
        key=key,
        counts={state: states.count(state) for state in get_args(TrialState) if state in states},
        seeds=tuple(sorted(set(frame["seed"]))) if "seed" in frame.columns else (),
        trials_per_setting=_trials_per_setting(results),
        correlations=tuple(
            line for request in correlations for line in correlate(frame, request, corpus=key.corpus, scale=key.scale)
        ),
        grids=tuple(
            lay_out(frame, row=request.row, column=request.column, metric=metric)
            for request in maps
            if {request.row, request.column} <= set(frame.columns)
            for metric in request.values
        ),
        answers=tuple(
            answer for request in analyses if (answer := _answer(frame, request, key, spectra or {})) is not None
        ),
        extremes=tuple(found for metric in metrics if (found := _extremes(frame, metric)) is not None),
        trouble=tuple(
            Trouble(name=record["name"], state=record["state"], cause=record["cause"] or "no cause recorded")
            for record in results.records
            if record["state"] in LOST
        ),
    )


def _without_published(request: Analysis) -> Analysis:
    """Of a generated language no paper has printed anything, and another language's values say nothing of it."""
    return replace(request, published={}) if hasattr(request, "published") else request  # type: ignore[arg-type]


def _answer(
    frame: pd.DataFrame, request: Analysis, key: StudyKey, spectra: Mapping[str, NDArray[np.float64]]
) -> Answer | None:
    corpus = key.corpus
    match request:
        case GroupTable():
            return group_numbers(frame, request, corpus=corpus)
        case Differences():
            return difference_numbers(frame, request, corpus=corpus)
        case Comparison():
            return contrast_numbers(frame, request, corpus=corpus)
        case PairedComparison():
            return paired_numbers(frame, request)
        case Counts():
            return count_numbers(frame, request)
        case Curves():
            return curve_numbers(frame, request, corpus=corpus)
        case Lines():
            return line_numbers(frame, request)
        case Predictions():
            return prediction_numbers(frame, tag=_own_tag(key, "--contexts"))
        case Similarity():
            return similarity_numbers(frame, request, corpus=corpus, tag=_own_tag(key, "--benchmarks"))
        case Tuned():
            return tuned_numbers(frame)
        case JacobianSpectra():
            return jacobian_numbers(frame, request, spectra=spectra)
        case PressNoise():
            return press_noise_numbers(frame)
        case Recomputed():
            return recomputed_numbers(frame)
        case TrueRank():
            return true_rank_numbers(frame, request)
        case _:
            return None


def _own_tag(key: StudyKey, option: str) -> str:
    """The tag of what the user brought by this option; empty for what is published."""
    return str(json.loads(key.overrides).get(option, "")).rpartition(" ")[2]


def _trials_per_setting(results: FlatResults) -> int:
    settings: dict[str, int] = {}
    for record in results.records:
        setting = repr([record[name] for name in results.config_columns if name != "seed"])
        settings[setting] = settings.get(setting, 0) + 1
    return max(settings.values(), default=0)


def _extremes(frame: pd.DataFrame, metric: str) -> Extremes | None:
    if metric not in frame.columns:
        return None
    done = frame[frame["state"] == "done"].dropna(subset=[metric])
    if done.empty:
        return None
    values, names = list(done[metric]), list(done["name"])
    least, greatest = min(values), max(values)
    return Extremes(
        metric=metric,
        least=float(least),
        least_name=str(names[values.index(least)]),
        greatest=float(greatest),
        greatest_name=str(names[values.index(greatest)]),
    )
