"""What every study's report says in numbers, whatever the study asks besides: trials, seeds,
ranges, trouble."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from orchestrator.analysis.frames import FlatResults
from orchestrator.store import LOST, StudyKey, TrialState
from orchestrator.variants import differing_settings
from orchestrator.words import is_number
from search_spaces.analyses import Correlation, GridMap
from search_spaces.study import Study

if TYPE_CHECKING:
    import pandas as pd


Environment = Mapping[str, Mapping[str, int]]
"""What trials were computed with: for each entry (code, host, torch ...), how many trials have each
of its values."""

PERPLEXITIES = ("test_perplexity", "valid_perplexity")
"""Of the kept model, the one that counts first."""


@dataclass(frozen=True, kw_only=True)
class Extremes:
    """The least and the greatest value of a metric over the done trials, and whose they are."""

    metric: str
    least: float
    least_name: str
    greatest: float
    greatest_name: str


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
    extremes: tuple[Extremes, ...]
    """Of each metric that the study's correlations and grids are about."""
    trouble: tuple[Mapping[str, Any], ...]
    """The records of the trials that have no result, whose causes are there."""
    worse_than_uniform: tuple[str, ...]
    """The names of the done trials that predict worse than a guess that takes every word for
    equally likely."""

    named_otherwise: tuple[str, Mapping[str, Any]] | None
    """The first trial whose name gives settings as the study writes them, for paper scale, and
    these as they were trained."""

    @property
    def trials(self) -> int:
        """All trials of the plan."""
        return sum(self.counts.values())

    @property
    def done(self) -> int:
        """Trials with a result."""
        return self.counts.get("done", 0)


def summarise(
    study: Study, key: StudyKey, results: FlatResults, frame: pd.DataFrame
) -> StudySummaryNumbers:
    """Count what there is; `frame` is the data frame of `results`."""
    correlations = [request for request in study.analyses if isinstance(request, Correlation)]
    grids = [request for request in study.analyses if isinstance(request, GridMap)]
    metrics = dict.fromkeys(
        [name for request in correlations for name in (request.x, request.y)]
        + [name for request in grids for name in request.values]
    )
    done = frame[frame["state"] == "done"]
    measured = done.set_index("name").reindex(columns=list(metrics))
    states = list(frame["state"])
    settings = (
        (record["name"], {key: record[key] for key in results.config_columns})
        for record in results.records
    )
    named = ((name, differing_settings(name, of_trial)) for name, of_trial in settings)
    return StudySummaryNumbers(
        key=key,
        counts={state: states.count(state) for state in get_args(TrialState) if state in states},
        seeds=tuple(sorted(set(frame["seed"]))) if "seed" in frame.columns else (),
        trials_per_setting=max(
            Counter(record["setting"] for record in results.records).values(), default=0
        ),
        extremes=tuple(
            Extremes(
                metric=metric,
                least=float(values.min()),
                least_name=str(values.idxmin()),
                greatest=float(values.max()),
                greatest_name=str(values.idxmax()),
            )
            for metric in metrics
            if len(values := measured[metric].dropna())
        ),
        trouble=tuple(record for record in results.records if record["state"] in LOST),
        worse_than_uniform=tuple(
            record["name"] for record in results.records if is_worse_than_uniform(record)
        ),
        named_otherwise=next((one for one in named if one[1]), None),
    )


def is_worse_than_uniform(record: Mapping[str, Any]) -> bool:
    """Whether a trial is done with a perplexity above the number of words in the vocabulary, which
    is that of a uniform guess; False where either was not measured. The vocabulary is known with
    the spectrum: its matrix has a column a word."""
    perplexity = next((record[name] for name in PERPLEXITIES if record.get(name) is not None), None)
    words = record.get("rank_columns")
    return (
        record["state"] == "done"
        and is_number(perplexity)
        and is_number(words)
        and perplexity > words
    )


def count_values(environments: Sequence[Mapping[str, str]]) -> Environment:
    """Count the values of each entry over the trials, the most frequent first.

    `environments` has a mapping a trial, empty where nothing was recorded. A trial without an entry
    counts as ""."""
    names = dict.fromkeys(name for environment in environments for name in environment)
    values = {
        name: sorted(environment.get(name, "") for environment in environments) for name in names
    }
    return {name: dict(Counter(of_name).most_common()) for name, of_name in values.items()}
