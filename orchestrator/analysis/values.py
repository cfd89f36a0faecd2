"""A metric's values, trial by trial."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from orchestrator.analysis.tidy_frames import tidy

if TYPE_CHECKING:
    import pandas as pd


def values_of_done(frame: pd.DataFrame, metric: str, *columns: str) -> Iterator[tuple[Any, ...]]:
    """Yield the cells of `columns` and the metric of each done trial that has it, in the order of
    the plan."""
    if {metric, *columns}.issubset(frame.columns):
        done = frame[frame["state"] == "done"].dropna(subset=[metric])
        for *cells, value in zip(*(done[column] for column in (*columns, metric)), strict=True):
            yield (*cells, float(value))


def values_by_group(frame: pd.DataFrame, metric: str) -> dict[str, list[float]]:
    """Return the metric of the done trials of each group, in the order of the plan; groups without
    a value are empty."""
    values: dict[str, list[float]] = {group: [] for group in frame["group"]}
    for group, value in values_of_done(frame, metric, "group"):
        values[group].append(value)
    return values


def trial_values(frame: pd.DataFrame, metric: str) -> Iterator[dict[str, Any]]:
    """Yield group, name, trial_id and value of each done trial that has the metric."""
    names = ("group", "name", "trial_id")
    for *cells, value in values_of_done(frame, metric, *names):
        yield {**dict(zip(names, cells, strict=True)), "value": value}


def losses_at(frame: pd.DataFrame, x: str, metric: str) -> pd.DataFrame:
    """Return the done trials with a finite x and loss: x, loss, seed, name, trial_id.

    The loss is the logarithm of a perplexity, another metric as it is.
    """
    found = []
    for name, trial_id, size, seed, value in values_of_done(
        frame, metric, "name", "trial_id", x, "seed"
    ):
        if size is not None and math.isfinite(float(size)) and math.isfinite(value):
            loss = math.log(value) if metric.endswith("perplexity") else value
            trial = {"seed": seed, "name": name, "trial_id": trial_id}
            found.append({"x": float(size), "loss": loss} | trial)
    return tidy(found, ("x", "loss", "seed", "name", "trial_id"))
