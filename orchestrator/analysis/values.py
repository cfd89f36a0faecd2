"""A metric's values, trial by trial."""

from __future__ import annotations

import math

import pandas as pd


def values_of_done(frame: pd.DataFrame, metric: str, *columns: str) -> pd.DataFrame:
    """Return `columns` and `value`, the metric, of each done trial that has it, in plan order."""
    done = frame[frame["state"] == "done"].reindex(columns=[*columns, metric])
    return done.dropna(subset=[metric]).rename(columns={metric: "value"}).astype({"value": float})


def trial_values(frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return group, name, trial_id and value of each done trial that has the metric."""
    return values_of_done(frame, metric, "group", "name", "trial_id")


def values_by_group(frame: pd.DataFrame, metric: str) -> dict[str, list[float]]:
    """Return the metric of the done trials of each group, in the order of the plan; groups without
    a value are empty."""
    values = dict(iter(values_of_done(frame, metric, "group").groupby("group")["value"]))
    return {group: list(values.get(group, ())) for group in frame["group"]}


def losses_at(frame: pd.DataFrame, x: str, metric: str) -> pd.DataFrame:
    """Return the done trials that have x and a loss: x, loss, seed, name, trial_id.

    The loss is the logarithm of a perplexity, another metric as it is.
    """
    trials = values_of_done(frame, metric, x, "seed", "name", "trial_id").dropna(subset=[x])
    loss = trials["value"].map(math.log) if metric.endswith("perplexity") else trials["value"]
    return trials.assign(loss=loss).rename(columns={x: "x"}).astype({"x": float})
