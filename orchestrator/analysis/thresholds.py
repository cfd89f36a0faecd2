"""Smallest size x at which a metric reaches a value, and the law x = a z^b over a setting z.

The metric is interpolated linearly in both logarithms. Array axes: R sizes x, K settings z, B draws
(the first is the data).
"""

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
from orchestrator.analysis.tidy_frames import Families, add_holm, estimate_row, tidy, values_of_done
from orchestrator.words import too_few
from search_spaces.laws import Threshold

# A law of two parameters fits two points exactly.
FEWEST_SETTINGS = 3
# A metric is raised to this share of the requested value: in a finite text, a gap may be zero or
# negative.
LEAST_SHARE = 1e-3


@dataclass(frozen=True, kw_only=True)
class ThresholdNumbers:
    """Answer to Threshold."""

    request: Threshold
    points: pd.DataFrame
    """One row per z (ascending) and group. `x` and its interval's ends are 0 if the smallest size
    reaches the value, infinite if no size does. `ratio` is x divided by the baseline's x at the
    same z; `p` tests a ratio of 1."""
    laws: pd.DataFrame
    """Law x = a z^b, one row per group. `fitted` lists each z whose x is between trained sizes.
    `farthest_off` is the largest factor (at least 1) between a fitted x and the law."""
    families: ClassVar[Families] = {"points": ("p",)}


def threshold_numbers(frame: pd.DataFrame, request: Threshold) -> ThresholdNumbers | None:
    """Return sizes and laws over the done trials; None if no trial has the metric."""
    if not {request.over, request.by, request.x} <= set(frame.columns):
        return None
    curves = _curves(frame, request)
    if not curves:
        return None
    draws = {key: least_x(curve, math.log(request.value)) for key, curve in curves.items()}
    reached_x = {key: x_B for key, x_B in draws.items() if is_reached(float(x_B[0]))}
    points = []
    for (z, group), curve in curves.items():
        x, baseline = over_draws(draws[z, group]), reached_x.get((z, request.baseline))
        group_x = reached_x.get((z, group)) if group != request.baseline else None
        ratio = Statistic()
        if group_x is not None and baseline is not None:
            count = min(len(group_x), len(baseline))  # 1 (the data) if a side has no draws
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = over_draws(group_x[:count] / baseline[:count], null=1.0)
        points.append(
            {
                "z": z,
                "group": group,
                "trained": " ".join(f"{size:g}" for size in curve.x_R),
                "trials": int(curve.count_R.sum()),
                **estimate_row("x", x),
                "baseline": request.baseline,
                **estimate_row("ratio", ratio),
                "p": ratio.p_value,
                "missing": x.missing,
            }
        )
    groups = dict.fromkeys(group for _, group in curves)
    laws = (
        {"group": group}
        | law_over({z: x_B for (z, name), x_B in reached_x.items() if name == group})
        for group in groups
    )
    return ThresholdNumbers(request=request, points=add_holm(tidy(points)), laws=tidy(laws))


def is_reached(x: float | None) -> bool:
    """Return whether x is a size, neither 0 nor infinite."""
    return x is not None and 0 < x < math.inf


def _curves(frame: pd.DataFrame, request: Threshold) -> dict[tuple[float, Any], Curve]:
    by_z = frame.assign(z=frame[request.over].map(number_in)).sort_values("z", kind="stable")
    trials = values_of_done(by_z, request.metric, "z", request.by, request.x, "seed")
    trials = trials.set_axis(["panel", "group", "x", "seed", "loss"], axis="columns")
    trials = trials.dropna(subset=["panel", "group", "x"])
    trials["loss"] = trials["loss"].clip(lower=request.value * LEAST_SHARE).map(math.log)
    return {} if trials.empty else curves_over_seeds(trials)


def number_in(value: Any) -> float | None:
    """Return `value` if it is a positive number. From a name, return its final number.

    The name "spam-1000" gives 1000. Returns None for other values.
    """
    match = re.search(r"\d+$", value) if isinstance(value, str) else None
    number = float(match[0]) if match else value if isinstance(value, int | float) else None
    return float(number) if number is not None and 0 < number < math.inf else None


def least_x(curve: Curve, level: float) -> Array:
    """Return the x at which the curve of each draw (B) first falls to `level`.

    It is interpolated in log x. It is 0 if the first size is at or below the level, infinite if no
    size is.
    """
    below_BR = curve.mean_BR <= level
    right_B = below_BR.argmax(axis=1)[:, None]
    left_B = np.maximum(right_B - 1, 0)
    left_value_B, right_value_B = (
        np.take_along_axis(curve.mean_BR, index_B, axis=1)[:, 0] for index_B in (left_B, right_B)
    )
    log_R = np.log(curve.x_R)
    left_B, right_B = left_B[:, 0], right_B[:, 0]
    # The first size has no left neighbour. Avoid a division by zero; x is set to 0 below.
    fall_B = np.where(right_B > 0, left_value_B - right_value_B, 1.0)
    x_B: Array = np.exp(
        log_R[left_B] + (left_value_B - level) / fall_B * (log_R[right_B] - log_R[left_B])
    )
    x_B = np.where(right_B == 0, 0.0, x_B)
    return np.where(below_BR.any(axis=1), x_B, np.inf)


def law_over(x: Mapping[float, Array]) -> dict[str, Any]:
    """Return the law x = a z^b, fitted by least squares in logarithms.

    `x` has B draws per z; a draw counts if it has an x at every z.
    """
    exponent, log_factor, farthest = Statistic(), Statistic(), None
    missing = too_few(FEWEST_SETTINGS, "values with an x", len(x))
    if not missing:
        with np.errstate(divide="ignore"):
            log_x_BK = np.log(np.stack(list(x.values()), axis=1))
        log_x_BK[~np.isfinite(log_x_BK).all(axis=1)] = np.nan
        log_factor_B, exponent_B, residual_BK = _line(np.log(list(x)), log_x_BK)
        exponent, log_factor = over_draws(exponent_B), over_draws(log_factor_B)
        farthest = math.exp(float(np.abs(residual_BK[0]).max()))
    return {
        "fitted": " ".join(f"{z:g}" for z in x),
        **estimate_row("b", exponent),
        **estimate_row("log_a", log_factor),
        "farthest_off": farthest,
        "missing": missing or exponent.missing,
    }


def _line(z_K: Array, x_BK: Array) -> tuple[Array, Array, Array]:
    deviation_K = z_K - z_K.mean()
    slope_B: Array = x_BK @ deviation_K / (deviation_K @ deviation_K)
    height_B: Array = x_BK.mean(axis=1) - slope_B * z_K.mean()
    return height_B, slope_B, x_BK - height_B[:, None] - slope_B[:, None] * z_K
