"""Metrics over a swept setting (`--set training.learning_rate=5,10,20`), and trials by value."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from orchestrator.analysis.tidy_frames import sample_row, tidy, values_of_done
from orchestrator.variants import Variant, swept_keys, without_settings
from search_spaces.analyses import Analysis, Correlation
from search_spaces.study import Study

MOST_METRICS = 4
COSTS = ("parameters", "seconds", "seconds_per_epoch", "peak_memory_mib")
"""Metrics that a study reports but does not compare."""


@dataclass(frozen=True, kw_only=True)
class BySetting(Analysis):
    """Request for metrics over the values of a swept setting, by group."""

    key: str
    others: tuple[str, ...] = ()
    metrics: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SweptNumbers:
    """Answer to BySetting. Group names leave out this setting but have the other swept settings."""

    request: BySetting
    values: tuple[Any, ...]
    """Values of the setting in plan order; numbers ascend."""
    means: pd.DataFrame
    """One row per group, value and metric; `low` and `high` are the mean's 95% interval."""
    trials: pd.DataFrame

    @property
    def metrics(self) -> list[str]:
        """Return the metrics in `means`."""
        return list(dict.fromkeys(self.means["metric"]))

    def compared(self, metric: str) -> pd.DataFrame:
        """Return the metric's means of the groups that have a mean at every value."""
        rows = self.means[(self.means["metric"] == metric) & self.means["mean"].notna()]
        counts = rows.groupby("group")["value"].transform("count")
        return rows[counts == len(self.values)]


def swept_settings(frame: pd.DataFrame, overrides: str) -> tuple[tuple[str, ...], pd.DataFrame]:
    """Return the config keys with several `--set` values, and the frame.

    None and lists in these columns become text. `overrides` is from the study's key.
    """
    settings = Variant.read(overrides).settings
    keys = [key for key in swept_keys(settings) if key in frame]
    for key in keys:
        texts = frame[key].map(
            lambda value: json.dumps(value) if isinstance(value, list) else value
        )
        if None in settings[key]:
            texts = texts.astype(object).where(texts.notna(), "none")
        frame = frame.assign(**{key: texts})
    return tuple(key for key in keys if frame[key].nunique() > 1), frame


def by_setting_requests(study: Study, keys: Sequence[str], frame: pd.DataFrame) -> list[BySetting]:
    """Return a request per swept setting, for up to `MOST_METRICS` of the study's metrics."""
    metrics = [metric for metric in _metrics(study) if metric in frame and metric not in COSTS]
    selection = tuple(metrics[:MOST_METRICS])
    return [
        BySetting(
            key=key,
            others=tuple(k for k in keys if k != key),
            metrics=selection,
            goal=study.goal,
        )
        for key in keys
    ]


def _metrics(study: Study) -> dict[str, None]:
    names: list[str] = []
    for request in study.analyses:
        if isinstance(request, Correlation):
            names += [request.y, request.x]
        else:
            names += [*getattr(request, "metrics", ()), getattr(request, "metric", "")]
    names = list(filter(None, names)) or [study.goal.metric, "press_rank"]
    # The validation perplexity comes first, because it selects the value.
    return dict.fromkeys(["valid_perplexity", *names] if "test_perplexity" in names else names)


def swept_numbers(frame: pd.DataFrame, request: BySetting) -> SweptNumbers:
    """Return the means by value of the setting, over trials that have the setting."""
    swept_trials = frame.dropna(subset=[request.key])
    rows = swept_trials[["group", *request.others]].to_numpy().tolist()
    swept_trials = swept_trials.assign(group=[_label(*row, request=request) for row in rows])
    values = tuple(dict.fromkeys(swept_trials[request.key].tolist()))
    parts = dict(iter(swept_trials.groupby(["group", request.key], sort=False)))
    cells = [
        cell for cell in product(dict.fromkeys(swept_trials["group"]), values) if cell in parts
    ]
    means, trials = [], []
    for (group, value), metric in product(cells, request.metrics):
        cell_trials = parts[group, value]
        key = {"group": group, "value": value, "metric": metric}
        sample = list(values_of_done(cell_trials, metric)["value"])
        done_count = int((cell_trials["state"] == "done").sum())
        means.append(key | {"trials": len(cell_trials), "done": done_count} | sample_row(sample))
        trials += [key | {"measured": v} for v in sample]
    measured_metrics = {trial["metric"] for trial in trials}
    return SweptNumbers(
        request=request,
        values=values,
        means=tidy(mean for mean in means if mean["metric"] in measured_metrics),
        trials=tidy(trials),
    )


def _label(group: str, *values: Any, request: BySetting) -> str:
    others = [
        f"{key.rpartition('.')[2].replace('_', ' ')} "
        f"{f'{value:g}' if isinstance(value, float) else value}"
        for key, value in zip(request.others, values, strict=True)
        if value is not None and value == value  # NaN if a trial does not have it
    ]
    return ", ".join([without_settings(group, sorted((request.key, *request.others))), *others])


def at_each_value(
    frame: pd.DataFrame, keys: Sequence[str]
) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Yield each combination of values, in plan order, with its trials.

    A trial without a setting fits each value of that setting. Group names omit swept values, for
    analyses that compare groups by name.
    """
    groups = [without_settings(group, keys) for group in frame["group"]]
    trials = frame.assign(group=groups)
    for values in product(*(trials[key].dropna().unique().tolist() for key in keys)):
        values_by_key = dict(zip(keys, values, strict=True))
        masks = [
            (trials[key] == value) | trials[key].isna() for key, value in values_by_key.items()
        ]
        yield values_by_key, trials[np.logical_and.reduce(masks)].reset_index(drop=True)
