"""Rank correlations of metrics with a metric y, before and after removing the settings' effects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from orchestrator.analysis.statistics.estimates import Array, Statistic
from orchestrator.analysis.statistics.taken_away import (
    LEVEL_SIZES,
    SHAPES,
    Shape,
    correlation_without,
    degrees_left,
    describe_constant,
    design,
    explained_share,
)
from orchestrator.analysis.tidy_frames import Families, add_holm, estimate_row, tidy
from search_spaces.analyses import PartialCorrelations

ALL = "all"
"""Value of the column `setting` in the row for all settings together."""


@dataclass(frozen=True, kw_only=True)
class ConfoundingNumbers:
    """Answer to PartialCorrelations."""

    request: PartialCorrelations
    trials: int
    settings: tuple[str, ...]
    left: Mapping[Shape, int]
    """Degrees of freedom left for a correlation, by `Shape` of the removed effects."""
    correlations: pd.DataFrame
    """Spearman's `rho` of each metric with y. `taken_away` is the `Shape` of the removed effects;
    `holm_p` is corrected over metrics."""
    shares: pd.DataFrame
    """Share of a metric's variance that one setting explains. The first metric is y."""
    families: ClassVar[Families] = {"correlations": ("p", "taken_away")}

    @property
    def finest(self) -> Shape:
        """The `Shape` that removes the most effects and still leaves a correlation."""
        shapes = set(self.correlations.dropna(subset=["rho"])["taken_away"])
        return next((shape for shape in reversed(SHAPES) if shape in shapes), "none")


def confounding_numbers(
    frame: pd.DataFrame, request: PartialCorrelations
) -> ConfoundingNumbers | None:
    """Return the correlations over the done trials; None if no trial has y and a metric."""
    if request.y not in frame:
        return None
    points = frame[frame["state"] == "done"].dropna(subset=[request.y])
    metrics = [name for name in request.metrics if name in points and points[name].notna().any()]
    if not metrics:
        return None
    settings = [
        name
        for name in request.settings
        if name in points and points[name].nunique(dropna=False) > 1
    ]
    correlations = (
        _correlation(points.dropna(subset=[metric]), metric, request.y, settings, shape)
        for metric, shape in product(metrics, SHAPES)
    )
    shares = (
        {"metric": metric, "setting": setting}
        | {"adjusted_r2": _adjusted_r2(points.dropna(subset=[metric]), metric, names)}
        for metric in (request.y, *metrics)
        for setting, names in ((ALL, settings), *((name, [name]) for name in settings))
    )
    return ConfoundingNumbers(
        request=request,
        trials=len(points),
        settings=tuple(settings),
        left={shape: degrees_left(design(points[settings], shape)) for shape in SHAPES},
        correlations=add_holm(tidy(correlations), "p", "taken_away"),
        shares=tidy(shares),
    )


def _on_scale(values: pd.Series[float]) -> Array:
    # Effects on ranks and perplexities are ratios, so use logarithms.
    numbers = values.to_numpy(dtype=np.float64)
    return np.asarray(np.log(numbers) if (numbers > 0).all() else numbers)


def _correlation(
    points: pd.DataFrame, metric: str, y: str, settings: list[str], shape: Shape
) -> dict[str, Any]:
    rho = Statistic(
        missing=describe_constant(points[metric], metric) or describe_constant(points[y], y)
    )
    if not rho.missing:
        x_N, y_N = (_on_scale(points[name]) for name in (metric, y))
        rho = correlation_without(x_N, y_N, design(points[settings], shape), names=(metric, y))
    return {
        "metric": metric,
        "y": y,
        "taken_away": shape,
        "n": len(points),
        "df": rho.df,
        **estimate_row("rho", rho),
        "p": rho.p_value,
        "missing": rho.missing,
    }


def _adjusted_r2(points: pd.DataFrame, metric: str, settings: list[str]) -> float | None:
    if describe_constant(points[metric], metric):
        return None
    y = _on_scale(points[metric])
    shares = (
        explained_share(y, design(points[settings], shape)) for shape in reversed(LEVEL_SIZES)
    )
    return next((share for share in shares if share is not None), None)
