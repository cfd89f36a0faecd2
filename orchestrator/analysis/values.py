"""A metric's values, trial by trial."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from orchestrator.analysis.statistics.samples import SampleSummary

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class TrialValue:
    """What one trial brings to a mean, or to a mean difference."""

    name: str
    trial_id: str
    value: float


def values_by_group(frame: pd.DataFrame, metric: str) -> dict[str, list[float]]:
    """The metric of the done trials of each group, in the order of the plan; groups without a value
    are empty."""
    return {
        group: [one.value for one in trials]
        for group, trials in trials_by_group(frame, metric).items()
    }


def trials_by_group(frame: pd.DataFrame, metric: str) -> dict[str, tuple[TrialValue, ...]]:
    """The same with the names of the trials."""
    values: dict[str, list[TrialValue]] = {group: [] for group in frame["group"]}
    for group, name, trial_id, value in values_of_done(frame, metric, "group", "name", "trial_id"):
        values[group].append(TrialValue(name=name, trial_id=trial_id, value=value))
    return {group: tuple(trials) for group, trials in values.items()}


def values_of_done(frame: pd.DataFrame, metric: str, *columns: str) -> Iterator[tuple[Any, ...]]:
    """What each done trial that has the metric has in `columns`, and the metric, in the order of
    the plan."""
    if {metric, *columns}.issubset(frame.columns):
        done = frame[frame["state"] == "done"].dropna(subset=[metric])
        for *cells, value in zip(*(done[column] for column in (*columns, metric)), strict=True):
            yield (*cells, float(value))


def less_mean(trials: Sequence[TrialValue], baseline: SampleSummary) -> tuple[TrialValue, ...]:
    """What each trial has above the mean of a baseline; none where that has no value."""
    mean = baseline.mean
    return () if mean is None else tuple(replace(one, value=one.value - mean) for one in trials)


@dataclass(frozen=True, kw_only=True)
class Losses:
    """Trials with a loss at a size x, in the order of the plan."""

    x: tuple[float, ...]
    seeds: tuple[Any, ...]
    trials: tuple[TrialValue, ...]

    @property
    def values(self) -> list[float]:
        """The losses, in nats if the metric is a perplexity."""
        return [one.value for one in self.trials]


def losses_at(frame: pd.DataFrame, x: str, metric: str) -> Losses:
    """Return the losses of the done trials: the logarithm of a perplexity, another metric as it is.

    Trials without a finite x and a finite metric are left out.
    """
    found = []
    for name, trial_id, size, seed, value in values_of_done(
        frame, metric, "name", "trial_id", x, "seed"
    ):
        if size is not None and math.isfinite(float(size)) and math.isfinite(value):
            loss = math.log(value) if metric.endswith("perplexity") else value
            found.append((float(size), seed, TrialValue(name=name, trial_id=trial_id, value=loss)))
    sizes, seeds, trials = zip(*found, strict=True) if found else ((), (), ())
    return Losses(x=sizes, seeds=seeds, trials=trials)
