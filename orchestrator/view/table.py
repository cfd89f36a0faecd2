"""The trials of a study in columns, read once; an ended trial never changes, so later only new ends
are read."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrator.analysis import (
    LEADING,
    FlatResults,
    flatten,
    has_different,
    in_reading_order,
    is_worse_than_uniform,
)
from orchestrator.store import Store, StudyKey
from orchestrator.words import is_number

MOST_CHANGES = 1_000
"""Trials that are read one by one; of more, all are."""
PART = 1_000
"""Trials that are read at once; PostgreSQL looks up fewer, such as 500, one by one, four times as
slow."""
ENDS = ("state", "attempt", "cause")
LONGEST_TEXT = 100
MOST_TEXTS = 24
"""More than a figure has colours for."""


@dataclass(frozen=True, kw_only=True)
class StudyTable:
    """What pages show of a study's trials; every list is in plan order."""

    ids: tuple[str, ...]
    names: tuple[str, ...]
    settings: Mapping[str, Sequence[Any]]
    """Those that differ between trials, by their dotted paths."""
    metrics: Mapping[str, Sequence[Any]]
    """By name; None where a trial has none."""
    ends: Mapping[str, Sequence[Any]]
    """State, attempt and cause."""
    versions: Mapping[str, tuple[object, ...]]
    """As `Store.versions` gives them: equal ones are tables of the same results."""

    @cached_property
    def places(self) -> dict[str, int]:
        """Where in plan order a trial stands."""
        return {trial_id: place for place, trial_id in enumerate(self.ids)}

    @cached_property
    def columns(self) -> dict[str, Sequence[Any]]:
        """Every column by its name, in reading order."""
        return {"name": self.names, **self.ends, **self.settings, **self.metrics}

    @cached_property
    def numeric(self) -> tuple[str, ...]:
        """The settings and metrics that are numbers in every trial that has them."""
        return tuple(
            name
            for name, values in {**self.settings, **self.metrics}.items()
            if all(map(_is_number_or_none, values))
        )

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The settings that are no numbers, and have few different values."""
        others = {
            name: values for name, values in self.settings.items() if name not in self.numeric
        }
        return tuple(
            name for name, values in others.items() if len({*map(str, values)}) <= MOST_TEXTS
        )

    @cached_property
    def short_metrics(self) -> tuple[str, ...]:
        """The metrics without long texts, which are data, such as the likeliest words at a
        context."""
        return tuple(
            name for name, values in self.metrics.items() if not any(map(_is_long, values))
        )

    @cached_property
    def worse_than_uniform(self) -> tuple[str, ...]:
        """The names of the trials that predict worse than a guess that takes every word for equally
        likely."""
        columns = {**self.ends, **self.metrics}
        records = (
            dict(zip(columns, values, strict=True))
            for values in zip(*columns.values(), strict=True)
        )
        return tuple(compress(self.names, map(is_worse_than_uniform, records)))

    @cached_property
    def version(self) -> str:
        """Another text for a table of other results."""
        return format(hash(frozenset(self.versions.items())), "x")

    def only(self, places: Sequence[int]) -> StudyTable:
        """The table of the trials at these places."""
        if [*places] == [*range(len(self.ids))]:
            return self
        ids = tuple(self.ids[place] for place in places)

        def taken(columns: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
            return {name: [values[place] for place in places] for name, values in columns.items()}

        return replace(
            self,
            ids=ids,
            names=tuple(self.names[place] for place in places),
            settings=taken(self.settings),
            metrics=taken(self.metrics),
            ends=taken(self.ends),
            versions={trial_id: self.versions[trial_id] for trial_id in ids},
        )

    def levels(self, name: str) -> list[str]:
        """The different texts of a column in plan order: where they stand on an axis of texts,
        whatever it shows."""
        return list(dict.fromkeys(str(value) for value in self.columns[name] if value is not None))

    def numbers(self, name: str) -> NDArray[np.float64]:
        """A numeric column, NaN where a trial has none."""
        return np.array(self.columns[name], dtype=np.float64)


def read_table(store: Store, key: StudyKey, before: StudyTable | None) -> StudyTable:
    """The study's trials now; `before` is the table of earlier, of which what has not changed is
    taken."""
    versions = store.versions(key)
    if before is not None and before.versions == versions:
        return before
    if before is not None and list(before.versions) == list(versions):
        changed = [
            trial_id
            for trial_id, version in versions.items()
            if before.versions[trial_id] != version
        ]
        if len(changed) <= MOST_CHANGES:
            return _with_changes(before, flatten(store.results(key, changed)), versions)
    return _read_all(store, key, versions)


def _read_all(
    store: Store, key: StudyKey, versions: Mapping[str, tuple[object, ...]]
) -> StudyTable:
    """The table, read by parts: the configs of all trials at once would take more memory than
    everything else."""
    columns: dict[str, list[Any]] = {}
    config_names: dict[str, None] = {}
    ids = list(versions)
    for start in range(0, len(ids), PART):
        rows = store.results(key, ids[start : start + PART])
        results = flatten(rows)
        config_names |= dict.fromkeys(results.config_columns)
        count = len(columns.get("trial_id", ()))
        for name in results.columns:
            columns.setdefault(name, [None] * count).extend(
                _shared(record[name]) for record in results.records
            )
        for values in columns.values():
            values.extend([None] * (count + len(rows) - len(values)))
    trial_ids = columns.get("trial_id", [])
    metrics = columns.keys() - config_names.keys() - {*LEADING}
    return StudyTable(
        ids=tuple(trial_ids),
        names=tuple(columns.get("name", ())),
        settings={name: columns[name] for name in config_names if has_different(columns[name])},
        metrics={name: columns[name] for name in in_reading_order(metrics)},
        ends={name: columns.get(name, []) for name in ENDS},
        versions={trial_id: versions[trial_id] for trial_id in trial_ids},
    )


def _shared(value: Any) -> Any:
    """The same object for the same text, of which a study has few different ones."""
    return sys.intern(value) if type(value) is str else value


def _with_changes(
    before: StudyTable, results: FlatResults, versions: Mapping[str, tuple[object, ...]]
) -> StudyTable:
    """The table with the metrics and ends of these trials; names and settings of a plan stay."""
    nothing = [None] * len(before.ids)
    names = in_reading_order({*before.metrics, *results.metric_columns})
    columns = {name: list(before.metrics.get(name, nothing)) for name in names}
    ends = {name: list(values) for name, values in before.ends.items()}
    for record in results.records:
        place = before.places[record["trial_id"]]
        for name, values in [*columns.items(), *ends.items()]:
            values[place] = record.get(name)
    return replace(before, metrics=columns, ends=ends, versions=versions)


def _is_long(value: object) -> bool:
    return isinstance(value, str) and len(value) > LONGEST_TEXT


def _is_number_or_none(value: object) -> bool:
    return value is None or is_number(value)
