"""The least size at which a metric is as low as asked, and how that size grows with another
setting.

Between the sizes that were trained the metric is interpolated, as a straight line in the logarithms
of both. Legend: R places on x, K settings z, B draws of other seeds, the first one the data."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from orchestrator.analysis.statistics.estimates import Array, Statistic
from orchestrator.analysis.statistics.power_law import Curve, curves_over_seeds, over_draws
from orchestrator.analysis.tidy_frames import Families, corrected, estimated, tidy, values_of_done
from search_spaces.laws import Threshold

FEWEST_SETTINGS = 3
"""Values of z that a law of two numbers needs to be more than a line through its points."""
LEAST_SHARE = 1e-3
"""Of the value asked for: lower metrics count as this, as a gap in a finite text may come out at
zero or below."""


@dataclass(frozen=True, kw_only=True)
class ThresholdNumbers:
    """The answer to a Threshold request."""

    request: Threshold
    points: pd.DataFrame
    """A row for each z, ascending, and group: z, group, trained (the x, ascending, as a text),
    trials, x [95%] (0 if the metric is below the value at the least x already, infinite if it is
    nowhere; ends too), baseline, ratio [95%] (to the x of the baseline at the same z), p (of a
    ratio of 1), holm_p, missing."""
    laws: pd.DataFrame
    """A row a group, x = a z^b: group, fitted (the z at which the value is reached between two x,
    as a text), b, log_a [95% each], farthest_off (the largest factor by which an x lies off the
    law, 1 or more), missing (why there is no law)."""
    families: ClassVar[Families] = {"points": ("p",)}


def threshold_numbers(frame: pd.DataFrame, request: Threshold) -> ThresholdNumbers | None:
    """Return what a study asks for, over the done trials; None if none has the metric."""
    if not {request.over, request.by, request.x} <= set(frame.columns):
        return None
    curves = _curves(frame, request)
    if not curves:
        return None
    draws = {key: least_x(curve, math.log(request.value)) for key, curve in curves.items()}
    reached = {key: x_B for key, x_B in draws.items() if is_reached(float(x_B[0]))}
    points = []
    for (z, group), curve in curves.items():
        x, baseline = over_draws(draws[z, group]), reached.get((z, request.baseline))
        of_group = reached.get((z, group)) if group != request.baseline else None
        ratio = Statistic()
        if of_group is not None and baseline is not None:
            count = min(len(of_group), len(baseline))  # one, the data, if a side has no seeds
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = over_draws(of_group[:count] / baseline[:count], null=1.0)
        points.append(
            {
                "z": z,
                "group": group,
                "trained": " ".join(f"{size:g}" for size in curve.x_R),
                "trials": int(curve.count_R.sum()),
                **estimated("x", x),
                "baseline": request.baseline,
                **estimated("ratio", ratio),
                "p": ratio.p_value,
                "missing": x.missing,
            }
        )
    groups = dict.fromkeys(group for _, group in curves)
    laws = (
        {"group": group} | law_over({z: x_B for (z, of), x_B in reached.items() if of == group})
        for group in groups
    )
    return ThresholdNumbers(request=request, points=corrected(tidy(points)), laws=tidy(laws))


def is_reached(x: float | None) -> bool:
    """Whether the data show the x itself, not only that it is below or beyond those trained."""
    return x is not None and 0 < x < math.inf


def _curves(frame: pd.DataFrame, request: Threshold) -> dict[tuple[float, Any], Curve]:
    """The logarithm of the metric over x of each z, ascending, and group with a done trial."""
    by_z = frame.assign(z=frame[request.over].map(number_in)).sort_values("z", kind="stable")
    trials = values_of_done(by_z, request.metric, "z", request.by, request.x, "seed")
    trials = trials.set_axis(["panel", "group", "x", "seed", "loss"], axis="columns")
    trials = trials.dropna(subset=["panel", "group", "x"])
    trials["loss"] = trials["loss"].clip(lower=request.value * LEAST_SHARE).map(math.log)
    return {} if trials.empty else curves_over_seeds(trials)


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


def law_over(x: Mapping[float, Array]) -> dict[str, Any]:
    """Return the law over the x of each z, by least squares in logarithms, of every draw in which
    all of them are reached."""
    exponent, log_factor, off, missing = Statistic(), Statistic(), None, ""
    if len(x) < FEWEST_SETTINGS:
        there = "there is 1" if len(x) == 1 else f"there are {len(x)}"
        missing = f"it needs {FEWEST_SETTINGS} or more at which the value is reached, and {there}"
    else:
        with np.errstate(divide="ignore"):
            log_x_BK = np.log(np.stack(list(x.values()), axis=1))
        log_x_BK[~np.isfinite(log_x_BK).all(axis=1)] = np.nan
        log_factor_B, exponent_B, rest_BK = _line(np.log(list(x)), log_x_BK)
        exponent, log_factor = over_draws(exponent_B), over_draws(log_factor_B)
        off = math.exp(float(np.abs(rest_BK[0]).max()))
    return {
        "fitted": " ".join(f"{z:g}" for z in x),
        **estimated("b", exponent),
        **estimated("log_a", log_factor),
        "farthest_off": off,
        "missing": missing or exponent.missing,
    }


def _line(z_K: Array, x_BK: Array) -> tuple[Array, Array, Array]:
    """The line of least squares of each draw: its height at zero, its slope, and what it leaves."""
    from_mean_K = z_K - z_K.mean()
    slope_B: Array = x_BK @ from_mean_K / (from_mean_K @ from_mean_K)
    height_B: Array = x_BK.mean(axis=1) - slope_B * z_K.mean()
    return height_B, slope_B, x_BK - height_B[:, None] - slope_B[:, None] * z_K
