"""A study that was run once with each of several values of a setting (`--set
training.learning_rate=5,10,20`): its metrics by these values, and its trials at each of them
alone."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from orchestrator.analysis.statistics.estimates import Interval
from orchestrator.analysis.statistics.samples import SampleSummary, mean_interval, summarise_sample
from orchestrator.analysis.values import values_of_done
from orchestrator.variants import Variant, without_settings
from search_spaces.analyses import Analysis, Correlation, GridMap
from search_spaces.study import Study

if TYPE_CHECKING:
    import pandas as pd

MOST_METRICS = 4
COSTS = ("parameters", "seconds", "seconds_per_epoch", "peak_memory_mib")
"""What a study shows beside its question."""


@dataclass(frozen=True, kw_only=True)
class BySetting(Analysis):
    """Ask for metrics over the values that a setting was swept over, for each group."""

    key: str
    """The setting, by its dotted path."""
    others: tuple[str, ...] = ()
    """The other settings that were swept."""
    metrics: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ValueLine:
    """The trials of one group at one value of the setting."""

    group: str
    """As without the sweep, with its values of the other settings that were swept."""
    value: Any
    trials: int
    done: int
    measured: Mapping[str, tuple[float, ...]]
    """Metric -> its value in each done trial that has it."""

    def sample(self, metric: str) -> SampleSummary:
        """The metric's mean and standard deviation."""
        return summarise_sample(self.measured[metric])

    def interval(self, metric: str) -> Interval | None:
        """The mean's 95% interval by Student's t over the seeds; None for one trial."""
        return mean_interval(self.sample(metric))


@dataclass(frozen=True, kw_only=True)
class SweptNumbers:
    """The answer to a BySetting request."""

    request: BySetting
    values: tuple[Any, ...]
    """Of the setting, in the order of the plan: numbers ascend."""
    lines: tuple[ValueLine, ...]

    def means(self, metric: str) -> dict[str, dict[Any, float]]:
        """Group -> value -> the metric's mean, of the groups that have one at every value: only
        these compare."""
        means: dict[str, dict[Any, float]] = {}
        for line in self.lines:
            mean = line.sample(metric).mean
            if mean is not None:
                means.setdefault(line.group, {})[line.value] = mean
        return {
            group: by_value
            for group, by_value in means.items()
            if len(by_value) == len(self.values)
        }


@dataclass(frozen=True, kw_only=True)
class AtValues:
    """The trials at one combination of values of what was swept."""

    values: Mapping[str, Any]
    """By dotted key."""
    frame: pd.DataFrame
    """With the groups that the study has without the sweep."""


def swept_settings(frame: pd.DataFrame, overrides: str) -> tuple[tuple[str, ...], pd.DataFrame]:
    """The keys that `--set` gave several values, and the frame with a text for a value of these
    that is none or a list.

    `overrides` are those of the study's key.
    """
    settings = Variant.read(overrides).settings
    several = {key: values for key, values in settings.items() if len(values) > 1 and key in frame}
    for key, values in several.items():
        texts = frame[key].map(
            lambda value: json.dumps(value) if isinstance(value, list) else value
        )
        if None in values:
            texts = texts.astype(object).where(texts.notna(), "none")
        frame = frame.assign(**{key: texts})
    return tuple(sorted(key for key in several if frame[key].nunique() > 1)), frame


def by_setting_requests(study: Study, keys: Sequence[str], frame: pd.DataFrame) -> list[BySetting]:
    """One for each swept setting, of the metrics that the study is about as far as they are
    measured."""
    metrics = [metric for metric in _metrics(study) if metric in frame and metric not in COSTS][
        :MOST_METRICS
    ]
    return [
        BySetting(key=key, others=tuple(k for k in keys if k != key), metrics=tuple(metrics))
        for key in keys
    ]


def _metrics(study: Study) -> dict[str, None]:
    names: list[str] = []
    for request in study.analyses:
        if isinstance(request, Correlation):
            names += [request.y, request.x]
        elif isinstance(request, GridMap):
            names += request.values
        else:
            names += [
                *getattr(request, "metrics", ()),
                *filter(None, [getattr(request, "metric", None)]),
            ]
    names = names or ["test_perplexity", "press_rank"]
    # A value is chosen by the validation text: its perplexity comes first.
    return dict.fromkeys(["valid_perplexity", *names] if "test_perplexity" in names else names)


def swept_numbers(frame: pd.DataFrame, request: BySetting) -> SweptNumbers:
    """The table that was asked for; trials that do not have the setting are left out."""
    having = frame.dropna(subset=[request.key])
    columns = ["group", *request.others]
    having = having.assign(
        group=[_label(*row, request=request) for row in having[columns].to_numpy().tolist()]
    )
    values = tuple(dict.fromkeys(having[request.key].tolist()))
    parts = dict(iter(having.groupby(["group", request.key], sort=False)))
    lines = [
        _line(group, value, parts.get((group, value), having.iloc[:0]), request.metrics)
        for group in dict.fromkeys(having["group"])
        for value in values
    ]
    return SweptNumbers(
        request=request, values=values, lines=tuple(line for line in lines if line.trials)
    )


def _label(group: str, *values: Any, request: BySetting) -> str:
    others = [
        f"{key.rpartition('.')[2].replace('_', ' ')} {_plain(value)}"
        for key, value in zip(request.others, values, strict=True)
        if value is not None and value == value  # NaN where a trial does not have that setting
    ]
    return ", ".join([without_settings(group, sorted((request.key, *request.others))), *others])


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _line(group: str, value: Any, trials: pd.DataFrame, metrics: Sequence[str]) -> ValueLine:
    measured = {
        metric: tuple(v for (v,) in values_of_done(trials, metric) if math.isfinite(v))
        for metric in metrics
    }
    done = int((trials["state"] == "done").sum())
    return ValueLine(group=group, value=value, trials=len(trials), done=done, measured=measured)


def at_each_value(frame: pd.DataFrame, keys: Sequence[str]) -> Iterator[AtValues]:
    """The trials at each combination of values, in the order of the plan, beside those that have
    none of the settings.

    What averages over trials, or compares groups by their names, sees the same as without the
    sweep."""
    groups = [without_settings(group, keys) for group in frame["group"]]
    plain = frame.assign(group=groups)
    for values in product(*(plain[key].dropna().unique().tolist() for key in keys)):
        at = dict(zip(keys, values, strict=True))
        fits = [(plain[key] == value) | plain[key].isna() for key, value in at.items()]
        yield AtValues(values=at, frame=plain[np.logical_and.reduce(fits)].reset_index(drop=True))
