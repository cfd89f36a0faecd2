"""Stored results as flat records and as a data frame, one row per trial."""

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
from trainables.config import LEADING, VARIANT, flat_values, spam_floor, spam_symbols
from trainables.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

LAYER = "output_layer.name"
LAYER_CLASS = "output_layer.layer"
# Columns that distinguish layers of equal name: a softcap's form, a network's units, the class of a
# user's layer.
LAYER_DETAILS = ("output_layer.form", "output_layer.units", LAYER_CLASS)
HEAD_WIDTHS = ("model.head_rank", "model.embedding_width", "model.width")
ID_DIGITS = SHORT_ID
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

Row = Mapping[str, Any]
"""One trial of `Store.results`: config is nested, metrics are flat."""


@dataclass(frozen=True, kw_only=True)
class FlatResults:
    """Trials as flat dicts with the same keys."""

    records: tuple[dict[str, Any], ...]
    columns: tuple[str, ...]
    config_columns: tuple[str, ...]
    """Dotted paths ("output_layer.c"), in config order."""
    metric_columns: tuple[str, ...]
    groups: tuple[str, ...]
    """Each trial's name without the seed, unique per setting."""
    extra_columns: tuple[Mapping[str, Any], ...]
    """Kind of each trial and, if it belongs to a tuning, its side and stage."""

    @property
    def varying(self) -> tuple[str, ...]:
        """Config columns whose values differ between trials."""
        return tuple(
            name
            for name in self.config_columns
            # `repr`, because True == 1 == 1.0.
            if len({repr(record[name]) for record in self.records}) > 1
        )

    def of_variant(self, key: StudyKey) -> FlatResults:
        """Return a copy with added columns for study, scale, corpus and overrides."""
        variant = {name: getattr(key, name) for name in VARIANT}
        return replace(
            self,
            records=tuple({**variant, **record} for record in self.records),
            columns=VARIANT + self.columns,
        )

    def frame(self) -> pd.DataFrame:
        """Return the records as a data frame with NaN for missing numbers.

        It also has the group, the extra columns and output_layer, a layer's full name ("softcap
        tanh").
        """
        import pandas as pd

        frame = pd.DataFrame(list(self.records), columns=list(self.columns))
        frame["group"] = list(self.groups)
        for name in dict.fromkeys(
            ["kind", *(name for columns in self.extra_columns for name in columns)]
        ):
            frame[name] = [columns.get(name) for columns in self.extra_columns]
        if LAYER in frame:
            names = [name for name in (LAYER, *LAYER_DETAILS) if name in frame]
            frame["output_layer"] = [
                " ".join(str(record[name]) for name in names if record[name] is not None) or None
                for record in self.records
            ]
        return frame


def with_layer_classes(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with a user's layers named by their class instead of "custom"."""
    if (classes := frame.get(LAYER_CLASS)) is None:
        return frame
    return frame.assign(**{LAYER: classes.fillna(frame[LAYER])})


def in_reading_order(metrics: Collection[str]) -> tuple[str, ...]:
    """Return the metrics in the order of `METRICS`, then the others by name."""
    return (*(name for name in METRICS if name in metrics), *sorted({*metrics} - {*METRICS}))


def flatten(rows: Sequence[Row]) -> FlatResults:
    """Return one flat record per trial, in the order of `rows`.

    Raises UserError if a config key is another column's name: of a metric in another class of a
    user's study, or because another program wrote the store.
    """
    configs = [flat_values(row["config"]) for row in rows]
    metrics = [
        _with_derived(row["metrics"], config) for row, config in zip(rows, configs, strict=True)
    ]
    config_columns = tuple(dict.fromkeys(key for config in configs for key in config))
    metric_names = {key for values in metrics for key in values}
    metric_columns = in_reading_order(metric_names)
    if clash := set(config_columns) & {*VARIANT, *LEADING, *metric_names}:
        raise UserError(
            f"the results have {min(clash)!r} both as a setting and as another column. Rename it "
            "in your code. If another program wrote them, choose another store with --store."
        )
    settings = [setting_hash(row["config"]) for row in rows]
    positions = [row.get("position") for row in rows]
    groups = _groups(rows, configs, settings, complete=not any(positions))
    records = []
    for row, setting, group, config, values in zip(
        rows, settings, groups, configs, metrics, strict=True
    ):
        name = one_line(row["name"])
        # The trial's name starts with its group, so replace that part.
        name = group + name.removeprefix(group_of(name))
        leading = {**row, "setting": setting[:ID_DIGITS], "name": name}
        records.append(
            {key: leading[key] for key in LEADING}
            | {key: config.get(key) for key in config_columns}
            | {key: values.get(key) for key in metric_columns}
        )
    return FlatResults(
        records=tuple(records),
        columns=LEADING + config_columns + metric_columns,
        config_columns=config_columns,
        metric_columns=metric_columns,
        groups=groups,
        extra_columns=tuple(
            {"kind": str(row["config"].get("kind", ""))}
            | ({"side": position.side, "stage": position.stage} if position else {})
            for row, position in zip(rows, positions, strict=True)
        ),
    )


def _groups(
    rows: Sequence[Row],
    configs: Sequence[Mapping[str, Any]],
    settings: Sequence[str],
    *,
    complete: bool,
) -> tuple[str, ...]:
    # An older program may have stored different settings under one name. They are not repetitions.
    trials = [
        (group_of(one_line(row["name"])), config) for row, config in zip(rows, configs, strict=True)
    ]
    varying = varying_settings(trials) if complete else {}
    return tuple(
        told_apart([completed_group(group, config, varying) for group, config in trials], settings)
    )


def _with_derived(metrics: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    test_perplexity = float(metrics.get("test_perplexity", math.nan))
    additions = {
        "generalisation_gap": test_perplexity - float(metrics.get("train_perplexity", math.nan))
    }
    if (floor := _entropy(config.get("corpus.name"))) is not None and test_perplexity > 0:
        additions["excess_cross_entropy"] = math.log(test_perplexity) - floor
    if "gradient_norm_lost" in metrics:
        width = next(filter(None, map(config.get, HEAD_WIDTHS)), math.nan)
        words = metrics.get("rank_columns") or metrics.get("kl_rank_columns") or math.nan
        # Root mean square of the part of a random unit vector outside d of its V dimensions.
        additions["gradient_norm_lost_null"] = math.sqrt(max(1 - width / words, 0.0))
    return {**metrics, **{name: value for name, value in additions.items() if math.isfinite(value)}}


def _entropy(corpus: Any) -> float | None:
    with suppress(UserError):
        symbols = spam_symbols(str(corpus))
        return None if symbols is None else spam_floor(symbols)
    return None
