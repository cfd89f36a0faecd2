"""The least size at which a metric is as low as asked, and how that size grows with another
setting.

Between the sizes that were trained the metric is interpolated, as a straight line in the logarithms
of both. Legend: R places on x, K settings z, B draws of other seeds, the first one the data."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from orchestrator.analysis.power_laws import NO_LAW
from orchestrator.analysis.statistics.estimates import Statistic
from orchestrator.analysis.statistics.power_law import Array, Curve, curves_over_seeds, over_draws
from orchestrator.analysis.statistics.samples import with_holm
from orchestrator.analysis.values import values_of_done
from search_spaces.laws import Threshold

if TYPE_CHECKING:
    import pandas as pd

FEWEST_SETTINGS = 3
"""Values of z that a law of two numbers needs to be more than a line through its points."""
LEAST_SHARE = 1e-3
"""Of the value asked for: lower metrics count as this, as a gap in a finite text may come out at
zero or below."""


@dataclass(frozen=True, kw_only=True)
class ThresholdPoint:
    """Of one group at one setting: the x at which its metric is as low as asked."""

    group: Any
    z: float
    trials: int
    places: tuple[float, ...]
    """The x that were trained, ascending."""
    x: Statistic
    """0 where the metric is below the value at the least place already, infinite where it is
    nowhere: ends too."""
    ratio: Statistic | None = None
    """To the x of the baseline at the same z, its p-value that of 1; None of the baseline, or where
    either has none."""
    p_adjusted: float | None = None
    """After Holm's correction over all ratios."""

    @property
    def is_reached(self) -> bool:
        """Whether the data say where, and not only below or beyond which x."""
        return self.x.value is not None and 0 < self.x.value < math.inf


@dataclass(frozen=True, kw_only=True)
class ThresholdLaw:
    """x = a z^b of one group, or why there is none."""

    group: Any
    fitted: tuple[float, ...]
    """The z at which the group's metric gets as low as asked between two places, ascending."""
    exponent: Statistic = NO_LAW
    """b."""
    log_factor: Statistic = NO_LAW
    """log a."""
    off: float | None = None
    """The largest factor by which an x that it was fitted to lies off it, 1 or more."""
    missing: str = ""

    def at(self, z: float) -> float:
        """x by the law, where there is one."""
        assert self.exponent.value is not None and self.log_factor.value is not None
        return math.exp(self.log_factor.value) * z**self.exponent.value


@dataclass(frozen=True, kw_only=True)
class ThresholdNumbers:
    """The answer to a Threshold request."""

    request: Threshold
    points: tuple[ThresholdPoint, ...]
    """By z, ascending, and group."""
    laws: tuple[ThresholdLaw, ...]


def threshold_numbers(frame: pd.DataFrame, request: Threshold) -> ThresholdNumbers | None:
    """What a study asks for, over the done trials; None where none has the metric."""
    if not {request.over, request.by, request.x} <= set(frame.columns):
        return None
    points: dict[tuple[float, Any], ThresholdPoint] = {}
    draws: dict[tuple[float, Any], Array] = {}
    for key, curve in _curves(frame, request).items():
        draws[key] = least_x(curve, math.log(request.value))
        points[key] = ThresholdPoint(
            z=key[0],
            group=key[1],
            trials=int(curve.count_R.sum()),
            places=tuple(map(float, curve.x_R)),
            x=over_draws(draws[key]),
        )
    if not points:
        return None
    groups = dict.fromkeys(group for _, group in points)
    reached = {key: draws[key] for key, point in points.items() if point.is_reached}
    return ThresholdNumbers(
        request=request,
        points=_against_baseline(points, reached, request.baseline),
        laws=tuple(
            law_over(group, {z: x_B for (z, of), x_B in reached.items() if of == group})
            for group in groups
        ),
    )


def _curves(frame: pd.DataFrame, request: Threshold) -> dict[tuple[float, Any], Curve]:
    """The logarithm of the metric over x of each z, ascending, and group with a done trial."""
    by_z = frame.assign(z=frame[request.over].map(number_in)).sort_values("z", kind="stable")
    found = [
        (float(x), math.log(max(value, request.value * LEAST_SHARE)), seed, group, z)
        for z, group, x, seed, value in values_of_done(
            by_z, request.metric, "z", request.by, request.x, "seed"
        )
        if group is not None and np.isfinite([z, x, value]).all()
    ]
    if not found:
        return {}
    x, logarithms, seeds, groups, z = zip(*found, strict=True)
    return curves_over_seeds(x, logarithms, seeds, groups=groups, parts=z)


def number_in(value: Any) -> float | None:
    """A positive number, or that at the end of a name: 1000 of "spam-1000"; None where there is
    none."""
    found = re.search(r"\d+$", value) if isinstance(value, str) else None
    number = float(found[0]) if found else value if isinstance(value, int | float) else None
    return float(number) if number is not None and 0 < number < math.inf else None


def least_x(curve: Curve, level: float) -> Array:
    """Where the curve first comes down to the level, of each draw: on the line in log x between the
    two places around it; 0 where the first place is at or below the level, infinite where none
    is."""
    below_BR = curve.mean_BR <= level
    right_B = below_BR.argmax(axis=1)[:, None]
    left_B = np.maximum(right_B - 1, 0)
    above_B, under_B = (
        np.take_along_axis(curve.mean_BR, place_B, axis=1)[:, 0] for place_B in (left_B, right_B)
    )
    log_R = np.log(curve.x_R)
    left_B, right_B = left_B[:, 0], right_B[:, 0]
    # Where the first place is the right one there is no left one, and the draw gets no share of it.
    fall_B = np.where(right_B > 0, above_B - under_B, 1.0)
    x_B: Array = np.exp(
        log_R[left_B] + (above_B - level) / fall_B * (log_R[right_B] - log_R[left_B])
    )
    x_B = np.where(right_B == 0, 0.0, x_B)
    return np.where(below_BR.any(axis=1), x_B, np.inf)


def _against_baseline(
    points: Mapping[tuple[float, Any], ThresholdPoint],
    reached: Mapping[tuple[float, Any], Array],
    baseline: Any,
) -> tuple[ThresholdPoint, ...]:
    """The points with their ratios, all of them one family of Holm's correction."""
    ratios = {}
    for (z, group), x_B in reached.items():
        if group != baseline and (z, baseline) in reached:
            by_B = reached[z, baseline]
            draws = min(len(x_B), len(by_B))  # one, the data, where a side has no seeds
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios[z, group] = over_draws(x_B[:draws] / by_B[:draws], null=1.0)
    return with_holm(
        [replace(point, ratio=ratios.get(key)) for key, point in points.items()], "ratio"
    )


def law_over(group: Any, x: Mapping[float, Array]) -> ThresholdLaw:
    """The law over the x of each z, by least squares in logarithms, of every draw in which all of
    them are reached."""
    if len(x) < FEWEST_SETTINGS:
        missing = f"it needs {FEWEST_SETTINGS} or more at which the value is reached, and there {_are(len(x))}"
        return ThresholdLaw(group=group, fitted=tuple(x), missing=missing)
    log_z_K = np.log(list(x))
    with np.errstate(divide="ignore"):
        log_x_BK = np.log(np.stack(list(x.values()), axis=1))
    log_x_BK[~np.isfinite(log_x_BK).all(axis=1)] = np.nan
    log_factor_B, exponent_B, rest_BK = _line(log_z_K, log_x_BK)
    exponent = over_draws(exponent_B)
    return ThresholdLaw(
        group=group,
        fitted=tuple(x),
        exponent=exponent,
        log_factor=over_draws(log_factor_B),
        off=math.exp(float(np.abs(rest_BK[0]).max())),
    )


def _line(z_K: Array, x_BK: Array) -> tuple[Array, Array, Array]:
    """The line of least squares of each draw: its height at zero, its slope, and what it leaves."""
    from_mean_K = z_K - z_K.mean()
    slope_B: Array = x_BK @ from_mean_K / (from_mean_K @ from_mean_K)
    height_B: Array = x_BK.mean(axis=1) - slope_B * z_K.mean()
    return height_B, slope_B, x_BK - height_B[:, None] - slope_B[:, None] * z_K


def _are(count: int) -> str:
    return "is 1" if count == 1 else f"are {count}"
