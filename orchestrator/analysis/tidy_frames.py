"""Tidy data frames, and the metric values to build them from.

None marks a missing value, so integers stay integers and files have every digit. "NAME [95%]" means
the columns NAME, NAME_low and NAME_high. The column `missing` explains a None.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from types import SimpleNamespace
from typing import Any

import pandas as pd

from orchestrator.analysis.statistics.estimates import Interval, Statistic
from orchestrator.analysis.statistics.samples import holm, mean_interval, summarise_sample

LOW, HIGH = "_low", "_high"
Families = Mapping[str, tuple[str, ...]]
"""Arguments of `add_holm`, by name of the data frame whose p-values it corrects."""


def tidy(records: Iterable[Mapping[Any, Any]], columns: Sequence[Any] = ()) -> pd.DataFrame:
    """Return the records as a frame with None for missing values.

    `columns` are used only if there are no records.
    """
    rows = list(records)
    frame = pd.DataFrame(rows, columns=None if rows else list(columns), dtype=object)
    return frame.where(frame.notna(), None)


def rows(frame: pd.DataFrame) -> Iterator[Any]:
    """Yield each row as an object with the columns as attributes."""
    for record in frame.to_dict("records"):
        yield SimpleNamespace(**{str(name): value for name, value in record.items()})


def ends(name: str, interval: Interval | None) -> dict[str, float | None]:
    """Return the columns NAME_low and NAME_high, with None if there is no interval."""
    low, high = interval or (None, None)
    return {name + LOW: low, name + HIGH: high}


def estimate_row(name: str, statistic: Statistic) -> dict[str, float | None]:
    """Return the columns NAME, NAME_low and NAME_high of a statistic."""
    return {name: statistic.value, **ends(name, statistic.interval)}


def test_row(name: str, statistic: Statistic) -> dict[str, float | None]:
    """Return the columns of `estimate_row`, NAME_df and NAME_p."""
    numbers = {f"{name}_df": statistic.df, f"{name}_p": statistic.p_value}
    return estimate_row(name, statistic) | numbers


def sample_row(values: Sequence[float], prefix: str = "") -> dict[str, float | None]:
    """Return the columns n, mean, sd, low and high (95% interval of the mean)."""
    sample = summarise_sample(values)
    low, high = ends("", mean_interval(sample)).values()
    numbers = {"n": sample.n, "mean": sample.mean, "sd": sample.sd, "low": low, "high": high}
    return {prefix + name: number for name, number in numbers.items()}


def add_holm(frame: pd.DataFrame, p: str = "p", *by: str) -> pd.DataFrame:
    """Return the frame with `holm_p`, Holm's correction of column `p`.

    A family is all rows or, with `by`, the rows with equal values in these columns.
    """
    if frame.empty:
        return frame
    families = [rows for _, rows in frame.groupby(list(by), sort=False)] if by else [frame]
    adjusted = [holm(rows[p]) for rows in families]
    frame = frame.drop(columns="holm_p", errors="ignore")
    frame.insert(list(frame).index(p) + 1, "holm_p", pd.concat(adjusted))
    return frame


def adjust_together(numbers: Sequence[Any]) -> list[Any]:
    """Return the answers to one request, with p-values of each family corrected over all answers.

    Answers without `families` stay unchanged.
    """
    answers = [answer for answer in numbers if hasattr(answer, "families")]
    for name, columns in answers[0].families.items() if answers else ():
        frames = [getattr(answer, name) for answer in answers]
        family = add_holm(pd.concat(frames, ignore_index=True), *columns)
        ends = list(accumulate(map(len, frames), initial=0))
        answers = [
            replace(answer, **{name: family[first:last]})
            for answer, (first, last) in zip(answers, pairwise(ends), strict=True)
        ]
    adjusted_answers = iter(answers)
    return [next(adjusted_answers) if hasattr(answer, "families") else answer for answer in numbers]


def values_of_done(frame: pd.DataFrame, metric: str, *columns: str) -> pd.DataFrame:
    """Return `columns` and `value` of the done trials with a number as metric, in plan order."""
    done = frame[frame["state"] == "done"].reindex(columns=[*columns, metric])
    values = pd.to_numeric(done.pop(metric), errors="coerce").astype(float)
    return done.assign(value=values).dropna(subset=["value"])


def trial_values(frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return group, name and value of the done trials with the metric."""
    return values_of_done(frame, metric, "group", "name")


def values_by_group(frame: pd.DataFrame, metric: str) -> dict[str, list[float]]:
    """Return the done trials' values of the metric by group, in plan order."""
    values = dict(iter(values_of_done(frame, metric, "group").groupby("group")["value"]))
    return {group: list(values.get(group, ())) for group in frame["group"]}


def losses_at(frame: pd.DataFrame, x: str, metric: str) -> pd.DataFrame:
    """Return x, loss, seed and name of the done trials with both x and the metric.

    `loss` is the metric's value, or its logarithm if the metric is a perplexity.
    """
    trials = values_of_done(frame, metric, x, "seed", "name").dropna(subset=[x])
    loss = trials["value"].map(math.log) if metric.endswith("perplexity") else trials["value"]
    return trials.assign(loss=loss).rename(columns={x: "x"}).astype({"x": float})
