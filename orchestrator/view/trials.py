"""Trials of a study as a data frame. Later reads fetch only trials that changed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from orchestrator.analysis import VALID_PERPLEXITY, flatten, in_reading_order
from orchestrator.store import Store, StudyKey
from trainables.config import LEADING, Goal

READ_AT_ONCE = 1_000
"""Number of trials per query. For fewer (such as 500), PostgreSQL chooses one look-up per trial,
which is four times as slow."""
LONGEST_TEXT = 100
MOST_LEVELS = 24
"""Most distinct texts that colours and symbols can show."""


@dataclass(frozen=True, kw_only=True)
class StudyTrials:
    """A study's trials, as its page shows them."""

    frame: pd.DataFrame
    """One row per trial id, in plan order. A column holds numbers or texts; a missing value is NaN.
    """
    settings: Sequence[str]
    """Settings that differ between trials."""
    metrics: Sequence[str]
    read_s: pd.Series[float]
    """When each row was read, by `time.monotonic`."""
    versions: Mapping[str, tuple[object, ...]]
    """From `Store.versions`."""
    goal: Goal = VALID_PERPLEXITY
    """Its metric comes first."""

    @cached_property
    def short_metrics(self) -> list[str]:
        """Return the metrics, except those with long texts, such as predicted words."""
        texts = {name: self.frame[name].astype(str).str.len().max() for name in self.metrics}
        return [name for name, length in texts.items() if length <= LONGEST_TEXT]

    @cached_property
    def numbers(self) -> list[str]:
        """Numeric settings and metrics."""
        return [name for name in (*self.settings, *self.metrics) if _is_numeric(self.frame[name])]

    @cached_property
    def texts(self) -> list[str]:
        """Return the text settings with at most `MOST_LEVELS` values."""
        texts = [name for name in self.settings if name not in self.numbers]
        return [name for name in texts if self.frame[name].nunique() <= MOST_LEVELS]

    @cached_property
    def shape(self) -> str:
        """Return a hash of trial ids and columns, not of values."""
        names = (*self.frame.index, *self.settings, *self.short_metrics, *self.numbers)
        return format(hash(names), "x")

    def of(self, ids: Sequence[str] | None) -> pd.DataFrame:
        """Return the rows of trials `ids` in plan order; None means all."""
        return self.frame if ids is None else self.frame[self.frame.index.isin(ids)]


def read_trials(
    store: Store, key: StudyKey, previous: StudyTrials | None = None, goal: Goal = VALID_PERPLEXITY
) -> StudyTrials:
    """Return the study's current trials. Unchanged ones are copied from `previous`."""
    versions = store.versions(key)
    old_versions = previous.versions if previous else {}
    if previous and old_versions == versions and previous.goal == goal:
        return previous
    changed_ids = [
        trial_id for trial_id in versions if old_versions.get(trial_id) != versions[trial_id]
    ]
    parts = [
        flatten(store.results(key, changed_ids[start : start + READ_AT_ONCE]))
        for start in range(0, len(changed_ids), READ_AT_ONCE)
    ]
    frames = [pd.DataFrame(part.records).set_index("trial_id") for part in parts]
    read_s = pd.Series(time.monotonic(), index=[*versions])
    metrics = {name for part in parts for name in part.metric_columns}
    if previous:
        frames.insert(0, previous.frame.drop(index=changed_ids, errors="ignore"))
        read_s.update(previous.read_s.drop(index=changed_ids, errors="ignore"))
        metrics.update(previous.metrics)
    empty_frame = pd.DataFrame(columns=[*LEADING]).set_index("trial_id")
    frame = _unify_columns(pd.concat(frames or [empty_frame]).reindex([*versions]))
    if previous:
        # `flatten` distinguishes equal names only among the trials of one call: keep earlier names.
        frame["name"] = previous.frame["name"].reindex(frame.index).fillna(frame["name"])
    frame = frame.drop(columns=[name for name in metrics if frame[name].isna().all()])
    settings = [str(name) for name in frame if name not in {*LEADING, *metrics}]
    return StudyTrials(
        frame=frame,
        settings=[name for name in settings if frame[name].nunique(dropna=False) > 1],
        metrics=sorted(
            in_reading_order(metrics.intersection(frame)), key=lambda name: name != goal.metric
        ),
        goal=goal,
        read_s=read_s,
        versions=versions,
    )


def _unify_columns(frame: pd.DataFrame) -> pd.DataFrame:
    columns = {
        name: column if _is_numeric(column) else column.map(str, na_action="ignore")
        for name, column in frame.infer_objects().items()
    }
    return pd.DataFrame(columns, index=frame.index)


def _is_numeric(column: pd.Series[float]) -> bool:
    return is_numeric_dtype(column) and not is_bool_dtype(column)
