"""Rank correlations of metrics with one of them, as they are and with the settings of the trials
taken away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from orchestrator.analysis.statistics.estimates import Statistic
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
from orchestrator.analysis.tidy_frames import Families, corrected, estimated, tidy
from search_spaces.analyses import PartialCorrelations

if TYPE_CHECKING:
    import pandas as pd

ALL = "all"
"""All settings together, in the finest way that leaves enough to judge by."""


@dataclass(frozen=True, kw_only=True)
class ConfoundingNumbers:
    """The answer to a PartialCorrelations request."""

    request: PartialCorrelations
    trials: int
    settings: tuple[str, ...]
    """Those that vary."""
    left: Mapping[Shape, int]
    """Degrees of freedom of a correlation, by how the settings are taken away."""
    correlations: pd.DataFrame
    """A row for each metric and way to take the settings away: metric, y, taken_away, n (trials
    that have both), df, rho (Spearman's) [95%], p, holm_p (over the metrics), missing."""
    shares: pd.DataFrame
    """A row for each metric, y first, and setting or ALL: metric, setting, adjusted_r2 (share of
    the metric's variance that levels of the setting account for)."""
    families: ClassVar[Families] = {"correlations": ("p", "taken_away")}

    @property
    def finest(self) -> Shape:
        """The finest way to take the settings away that leaves enough of the trials for any
        correlation."""
        judged = set(self.correlations.dropna(subset=["rho"])["taken_away"])
        return next((shape for shape in reversed(SHAPES) if shape in judged), "none")


def confounding_numbers(
    frame: pd.DataFrame, request: PartialCorrelations
) -> ConfoundingNumbers | None:
    """Return the correlations that a study asks for, over the done trials; None if none has y and a
    metric."""
    metrics = [metric for metric in request.metrics if metric in frame.columns]
    if request.y not in frame.columns or not metrics:
        return None
    points = _finite(frame[frame["state"] == "done"], request.y)
    metrics = [metric for metric in metrics if points[metric].notna().any()]
    if points.empty or not metrics:
        return None
    settings = [
        name
        for name in request.settings
        if name in points and points[name].nunique(dropna=False) > 1
    ]
    correlations = [
        row
        for metric in metrics
        for row in _correlations(_finite(points, metric), metric, request.y, settings)
    ]
    shares = [
        {"metric": metric, "setting": setting, "adjusted_r2": share}
        for metric in (request.y, *metrics)
        for setting, share in _explained(_finite(points, metric), metric, settings).items()
    ]
    return ConfoundingNumbers(
        request=request,
        trials=len(points),
        settings=tuple(settings),
        left={shape: degrees_left(_controls(points, settings, shape)) for shape in SHAPES},
        correlations=corrected(tidy(correlations), "p", "taken_away"),
        shares=tidy(shares),
    )


def _finite(points: pd.DataFrame, metric: str) -> pd.DataFrame:
    return points[np.isfinite(points[metric].astype(float))]


def on_scale(values: pd.Series[float]) -> NDArray[np.float64]:
    """Natural logarithms where all are positive, as effects on ranks and perplexities are shares
    rather than sums."""
    numbers: NDArray[np.float64] = np.asarray(values, dtype=np.float64)
    logarithms: NDArray[np.float64] = (
        np.log(numbers) if len(numbers) and numbers.min() > 0 else numbers
    )
    return logarithms


def _correlations(
    points: pd.DataFrame, metric: str, y: str, settings: Sequence[str]
) -> Iterator[dict[str, Any]]:
    for shape in SHAPES:
        rho = _correlation(points, metric, y, settings, shape)
        yield {
            "metric": metric,
            "y": y,
            "taken_away": shape,
            "n": len(points),
            "df": rho.df,
            **estimated("rho", rho),
            "p": rho.p_value,
            "holm_p": None,
            "missing": rho.missing,
        }


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
        return dict.fromkeys((ALL, *settings))
    y = on_scale(points[metric])
    shares = {name: explained_share(y, _controls(points, [name], "levels")) for name in settings}
    together = [explained_share(y, _controls(points, settings, shape)) for shape in TOGETHER]
    return {ALL: next((share for share in reversed(together) if share is not None), None), **shares}
