"""Numbers in every study's report: trials, seeds, ranges, problems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from orchestrator.analysis.frames import FlatResults
from orchestrator.plan import setting_total
from orchestrator.store import LOST, STATES, StudyKey, TrialState
from orchestrator.words import is_number
from search_spaces.analyses import Correlation, GridMap
from search_spaces.study import Study

if TYPE_CHECKING:
    import pandas as pd


Environment = Mapping[str, Mapping[str, int]]
"""Number of trials by entry (code, host, torch ...) and value."""

PERPLEXITIES = ("test_perplexity", "valid_perplexity")
"""Perplexities, the preferred one first."""


@dataclass(frozen=True, kw_only=True)
class StudySummaryNumbers:
    """Numbers about the trials of one study, scale, corpus and set of overrides."""

    key: StudyKey
    counts: dict[TrialState, int]
    seeds: tuple[int, ...]
    trials_per_setting: int
    """Largest number of trials that differ only in the seed."""
    seeds_vary: bool
    """True if another setting has fewer trials."""
    extent: str
    """Planned share of the study, such as "4 of 9 settings"; empty for all."""
    extremes: tuple[Mapping[str, Any], ...]
    """Smallest and largest value of each metric over the done trials, with the trials' names."""
    trouble: tuple[Mapping[str, Any], ...]
    worse_than_uniform: tuple[str, ...]

    @property
    def trials(self) -> int:
        """Number of planned trials."""
        return sum(self.counts.values())

    @property
    def done(self) -> int:
        """Number of done trials."""
        return self.counts.get("done", 0)


def summarise(
    study: Study, key: StudyKey, results: FlatResults, frame: pd.DataFrame
) -> StudySummaryNumbers:
    """Return the summary; `frame` is `results` as a data frame."""
    requests = study.analyses
    pairs = [(one.x, one.y) for one in requests if isinstance(one, Correlation)]
    grids = [one.metrics for one in requests if isinstance(one, GridMap)]
    metrics = dict.fromkeys(chain(*pairs, *grids))
    trials = frame[frame["state"] == "done"]
    values_by_trial = trials.set_index("name").reindex(columns=list(metrics))
    states = list(frame["state"])
    settings = Counter(record["setting"] for record in results.records)
    total = setting_total(key, study)
    return StudySummaryNumbers(
        key=key,
        counts={state: states.count(state) for state in STATES if state in states},
        seeds=tuple(sorted(set(frame["seed"]))) if "seed" in frame.columns else (),
        trials_per_setting=max(settings.values(), default=0),
        seeds_vary=len({*settings.values()}) > 1,
        extent=f"{len(settings)} of {total} settings" if len(settings) < total else "",
        extremes=tuple(
            {
                "metric": metric,
                "least": float(values.min()),
                "least_name": str(values.idxmin()),
                "greatest": float(values.max()),
                "greatest_name": str(values.idxmax()),
            }
            for metric in metrics
            if len(values := values_by_trial[metric].dropna())
        ),
        trouble=tuple(record for record in results.records if record["state"] in LOST),
        worse_than_uniform=tuple(
            record["name"] for record in results.records if is_worse_than_uniform(record)
        ),
    )


def is_worse_than_uniform(record: Mapping[str, Any]) -> bool:
    """Return whether a done trial's perplexity exceeds a uniform guess's (the vocabulary size).

    False if either is unknown.
    """
    perplexity = next((record[name] for name in PERPLEXITIES if record.get(name) is not None), None)
    words = record.get("rank_columns")
    return (
        record["state"] == "done"
        and is_number(perplexity)
        and is_number(words)
        and perplexity > words
    )


def count_values(environments: Sequence[Mapping[str, str]]) -> Environment:
    """Return how many trials have each value of each entry, most frequent first.

    A trial's missing entry counts as "".
    """
    names = dict.fromkeys(name for environment in environments for name in environment)
    return {
        name: dict(Counter(sorted(one.get(name, "") for one in environments)).most_common())
        for name in names
    }
