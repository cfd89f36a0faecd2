"""Rank correlations of metrics with one of them, as they are and with the settings of the trials
taken away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from orchestrator.analysis.statistics.estimates import Statistic
from orchestrator.analysis.statistics.samples import holm
from orchestrator.analysis.statistics.taken_away import (
    SHAPES,
    TOGETHER,
    Shape,
    alike,
    correlation_without,
    degrees_left,
    design,
    explained_share,
)
from search_spaces.analyses import PartialCorrelations

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class MetricCorrelation:
    """One metric over the trials."""

    metric: str
    n: int
    """Trials that have it and y."""
    rho: Mapping[Shape, Statistic]
    """Spearman's, by how the settings are taken away."""
    p_adjusted: Mapping[Shape, float | None]
    """After Holm's correction over the metrics."""
    explained: Mapping[str, float | None]
    """Adjusted share of its variance that levels of a setting account for, by setting; by "" that
    of all settings in the finest way that leaves enough to judge by."""


@dataclass(frozen=True, kw_only=True)
class ConfoundingNumbers:
    """The answer to a PartialCorrelations request."""

    request: PartialCorrelations
    trials: int
    settings: tuple[str, ...]
    """Those that vary."""
    left: Mapping[Shape, int]
    """Degrees of freedom of a correlation, by how the settings are taken away."""
    lines: tuple[MetricCorrelation, ...]
    y_explained: Mapping[str, float | None]
    points: pd.DataFrame
    """The done trials that have y."""

    @property
    def finest(self) -> Shape:
        """The finest way to take the settings away that leaves enough of the trials for any
        correlation."""
        judged = [
            shape
            for shape in SHAPES
            if any(line.rho[shape].value is not None for line in self.lines)
        ]
        return judged[-1] if judged else "none"


def confounding_numbers(
    frame: pd.DataFrame, request: PartialCorrelations
) -> ConfoundingNumbers | None:
    """The correlations that a study asks for, over the done trials; None where none has y and a
    metric."""
    metrics = [metric for metric in request.metrics if metric in frame.columns]
    if request.y not in frame.columns or not metrics:
        return None
    points = frame[(frame["state"] == "done") & np.isfinite(frame[request.y].astype(float))]
    metrics = [metric for metric in metrics if points[metric].notna().any()]
    if points.empty or not metrics:
        return None
    settings = [
        name
        for name in request.settings
        if name in points and points[name].nunique(dropna=False) > 1
    ]
    lines = [
        _line(points[np.isfinite(points[metric].astype(float))], metric, request, settings)
        for metric in metrics
    ]
    return ConfoundingNumbers(
        request=request,
        trials=len(points),
        settings=tuple(settings),
        left={shape: degrees_left(_controls(points, settings, shape)) for shape in SHAPES},
        lines=with_holm_by_shape(lines),
        y_explained=_explained(points, request.y, settings),
        points=points,
    )


def with_holm_by_shape(lines: Sequence[MetricCorrelation]) -> tuple[MetricCorrelation, ...]:
    """Return the lines with `p_adjusted` set: one Holm family for each way to take the settings
    away."""
    adjusted = {shape: holm([line.rho[shape].p_value for line in lines]) for shape in SHAPES}
    return tuple(
        replace(line, p_adjusted={shape: adjusted[shape][place] for shape in SHAPES})
        for place, line in enumerate(lines)
    )


def on_scale(values: pd.Series[float]) -> NDArray[np.float64]:
    """Natural logarithms where all are positive, as effects on ranks and perplexities are shares
    rather than sums."""
    numbers: NDArray[np.float64] = np.asarray(values, dtype=np.float64)
    logarithms: NDArray[np.float64] = (
        np.log(numbers) if len(numbers) and numbers.min() > 0 else numbers
    )
    return logarithms


def _line(
    points: pd.DataFrame, metric: str, request: PartialCorrelations, settings: Sequence[str]
) -> MetricCorrelation:
    return MetricCorrelation(
        metric=metric,
        n=len(points),
        rho={shape: _correlation(points, metric, request.y, settings, shape) for shape in SHAPES},
        p_adjusted={},
        explained=_explained(points, metric, settings),
    )


def _correlation(
    points: pd.DataFrame, metric: str, y: str, settings: Sequence[str], shape: Shape
) -> Statistic:
    if missing := alike(points[metric], metric) or alike(points[y], y):
        return Statistic(missing=missing)
    controls = _controls(points, settings, shape)
    return correlation_without(
        on_scale(points[metric]), on_scale(points[y]), controls, names=(metric, y)
    )


def _controls(points: pd.DataFrame, settings: Sequence[str], shape: Shape) -> NDArray[np.float64]:
    return design([list(points[name]) for name in settings], shape, count=len(points))


def _explained(
    points: pd.DataFrame, metric: str, settings: Sequence[str]
) -> Mapping[str, float | None]:
    if alike(points[metric], metric):
        return dict.fromkeys(("", *settings))
    y = on_scale(points[metric])
    shares = {name: explained_share(y, _controls(points, [name], "levels")) for name in settings}
    together = [explained_share(y, _controls(points, settings, shape)) for shape in TOGETHER]
    return {"": next((share for share in reversed(together) if share is not None), None), **shares}
