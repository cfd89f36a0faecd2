"""Results of the store as flat records and as a data frame: one row a trial, one column a config
value or metric."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from orchestrator.store import StudyKey
from orchestrator.variants import completed_group, setting_hash, told_apart, varying_settings
from orchestrator.words import SHORT_ID, one_line
from search_spaces.study import group_of
from trainables.config import flat_values, spam_floor, spam_symbols
from trainables.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

VARIANT = ("study", "scale", "corpus", "overrides")
LEADING = ("trial_id", "setting", "name", "state", "attempt", "cause")
LAYER = "output_layer.name"
LAYER_DETAILS = ("output_layer.form", "output_layer.layer")
"""What tells layers of one name apart: a softcap's form, the class of a user's own layer."""
ID_DIGITS = SHORT_ID
"""Of a trial's id and of a setting's hash, where a person is to read them."""
METRICS = (
    "train_perplexity",
    "valid_perplexity",
    "test_perplexity",
    "generalisation_gap",
    "press_rank",
    "press_tolerance",
    "press_eps",
    "effective_rank_1e-3",
    "effective_rank_1e-4",
    "effective_rank_1e-5",
    "entropy_rank",
    "stable_rank",
    "sigma_max",
    "rank_rows",
    "rank_columns",
    "rank_method",
    "kept_epoch",
    "epochs",
    "parameters",
    "seconds",
    "seconds_per_epoch",
    "peak_memory_mib",
)
"""The well-known metrics in reading order. A measurement that is not among them gets a column
behind."""

Row = Mapping[str, Any]
"""A trial as `Store.results` gives it: trial_id, name, state, attempt, cause, config (nested),
metrics (flat), and its place in a tuning."""


@dataclass(frozen=True, kw_only=True)
class FlatResults:
    """All trials as flat dicts with the same keys in the same order; None where a trial has no
    value."""

    records: tuple[dict[str, Any], ...]
    columns: tuple[str, ...]
    """Every column from left to right."""
    config_columns: tuple[str, ...]
    """Dotted paths ("output_layer.c") in the configs' own order."""
    metric_columns: tuple[str, ...]
    """In the order of `METRICS`, other ones behind by name: the same whatever order the trials
    finished in."""
    groups: tuple[str, ...]
    """What each trial repeats but for the seed: its name's group, completed where that stands for
    several settings."""
    beside: tuple[Mapping[str, Any], ...]
    """What the frame has of each trial next to its record: its kind, and its side and stage if it
    is of a tuning."""

    @property
    def varying(self) -> tuple[str, ...]:
        """The config columns that differ between trials, which is what the study is about."""
        return tuple(
            name
            for name in self.config_columns
            # True is not 1, and 1 is not 1.0.
            if len({repr(record[name]) for record in self.records}) > 1
        )

    def of_variant(self, key: StudyKey) -> FlatResults:
        """The same with columns before all others that say which variant of a study this is."""
        variant = {name: getattr(key, name) for name in VARIANT}
        return replace(
            self,
            records=tuple({**variant, **record} for record in self.records),
            columns=VARIANT + self.columns,
        )

    def frame(self) -> pd.DataFrame:
        """The records as a data frame with their groups and kinds, output layers where there are
        any ("softmax", "softcap tanh"), and sides and stages where the study tunes.

        A missing number is NaN in a column of floats.
        """
        import pandas as pd

        frame = pd.DataFrame(list(self.records), columns=list(self.columns))
        frame["group"] = list(self.groups)
        for name in dict.fromkeys(["kind", *(name for one in self.beside for name in one)]):
            frame[name] = [one.get(name) for one in self.beside]
        if LAYER in frame:
            details = [(" " + frame[name]).fillna("") for name in LAYER_DETAILS if name in frame]
            frame["output_layer"] = sum(details, start=frame[LAYER])
        return frame


def in_reading_order(metrics: Collection[str]) -> tuple[str, ...]:
    """The metrics in the order of `METRICS`, others behind by name."""
    return (*(name for name in METRICS if name in metrics), *sorted({*metrics} - {*METRICS}))


def flatten(rows: Sequence[Row]) -> FlatResults:
    """The trials of `Store.results`, one flat record each, in their order. Raises UserError for
    what no program of ours has stored."""
    configs = [flat_values(row["config"]) for row in rows]
    metrics = [
        _with_derived(row["metrics"], config) for row, config in zip(rows, configs, strict=True)
    ]
    config_columns = tuple(dict.fromkeys(key for config in configs for key in config))
    present = {key for measured in metrics for key in measured}
    metric_columns = in_reading_order(present)
    if clash := set(config_columns) & {*VARIANT, *LEADING, *present}:
        raise UserError(
            f"a config value is called otherwise than the other columns of the results, and the "
            f"results store has "
            f"{min(clash)!r} as both: this program has not written it, so name another one with "
            f"--store"
        )
    settings = [setting_hash(row["config"]) for row in rows]
    places = [row.get("place") for row in rows]
    groups = _groups(rows, configs, settings, complete=not any(places))
    records = []
    for row, setting, group, config, measured in zip(
        rows, settings, groups, configs, metrics, strict=True
    ):
        name = one_line(row["name"])
        # A name is as told apart as its group.
        name = group + name.removeprefix(group_of(name))
        leading = {**row, "setting": setting[:ID_DIGITS], "name": name}
        records.append(
            {key: leading[key] for key in LEADING}
            | {key: config.get(key) for key in config_columns}
            | {key: measured.get(key) for key in metric_columns}
        )
    return FlatResults(
        records=tuple(records),
        columns=LEADING + config_columns + metric_columns,
        config_columns=config_columns,
        metric_columns=metric_columns,
        groups=groups,
        beside=tuple(
            {"kind": str(row["config"].get("kind", ""))}
            | ({"side": place.side, "stage": place.stage} if place else {})
            for row, place in zip(rows, places, strict=True)
        ),
    )


def _groups(
    rows: Sequence[Row],
    configs: Sequence[Mapping[str, Any]],
    settings: Sequence[str],
    *,
    complete: bool,
) -> tuple[str, ...]:
    """Stores can have trials of different settings under one name, of an older version of this
    program or of the study, which are no repetitions of each other. `complete` says what varies
    among them."""
    trials = [
        (group_of(one_line(row["name"])), config) for row, config in zip(rows, configs, strict=True)
    ]
    varying = varying_settings(trials) if complete else {}
    return tuple(
        told_apart([completed_group(group, config, varying) for group, config in trials], settings)
    )


def _with_derived(metrics: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """The metrics, and what follows from them, where it is finite: `generalisation_gap`, test minus
    train perplexity; of a language whose entropy is known in closed form `excess_cross_entropy`,
    the test loss less that entropy."""
    tested = float(metrics.get("test_perplexity", math.nan))
    derived = {"generalisation_gap": tested - float(metrics.get("train_perplexity", math.nan))}
    if (floor := _entropy(config.get("corpus.name"))) is not None and tested > 0:
        derived["excess_cross_entropy"] = math.log(tested) - floor
    return {**metrics, **{name: value for name, value in derived.items() if math.isfinite(value)}}


def _entropy(corpus: Any) -> float | None:
    """Nats a token of `spam-V`; None for any other corpus, and for a name that this program does
    not know."""
    with suppress(UserError):
        symbols = spam_symbols(str(corpus))
        return None if symbols is None else spam_floor(symbols)
    return None
