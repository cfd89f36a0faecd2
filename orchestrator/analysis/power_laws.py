"""Power law of each group's loss over a size, and the size at which a baseline has equal loss.

Array axes: B draws, of which the first is the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from orchestrator.analysis.statistics.estimates import Interval, Statistic
from orchestrator.analysis.statistics.power_law import (
    AT_BOUND,
    EXPONENTS,
    FEWEST_SIZES,
    Curve,
    Laws,
    curves_over_seeds,
    f_test,
    fit_laws,
    lack_of_fit,
    over_draws,
    seed_by_group_p,
)
from orchestrator.analysis.tidy_frames import Families, add_holm, estimate_row, losses_at, tidy
from orchestrator.words import too_few
from search_spaces.laws import PowerLaw

CURVE_POINTS = 60
Key = tuple[Any, Any]
"""(panel, group)."""


@dataclass(frozen=True, kw_only=True)
class PowerLawNumbers:
    """Laws L(x) = E + a x^-b of each panel and group; L is the loss in nats per token."""

    request: PowerLaw
    laws: LawFrames
    factors: pd.DataFrame
    """One row per group: the factor m for which L(x) is the baseline's L(m x), with shared E and b.
    `p` tests m = 1; `misfit_p` tests whether separate E and b fit better (F-test)."""
    equals: pd.DataFrame
    """One row per group and size x that the baseline has, too. `equal` is the size at which the
    baseline's law has the group's loss at x; infinite if never. The baseline's residual at x is
    first subtracted from that loss. `ratio` is `equal` / x; `p` tests a ratio of 1. `extrapolated`
    marks sizes outside the baseline's."""
    seed_by_group_p: Mapping[Any, float]
    """P-value by panel for seed effects that differ between groups but not over x. Intervals ignore
    such effects."""
    families: ClassVar[Families] = {"factors": ("p",), "equals": ("p",)}


@dataclass(frozen=True, kw_only=True)
class LawFrames:
    """Fitted laws, their data and their curves, as data frames."""

    fits: pd.DataFrame
    """One row per group. `misfit_p` is an F-test of the residuals against the spread of seeds.
    `not_pinned` names parameters whose value or interval ends at a bound of the fit."""
    points: pd.DataFrame
    trials: pd.DataFrame
    band: pd.DataFrame


def power_law_numbers(frame: pd.DataFrame, request: PowerLaw) -> PowerLawNumbers | None:
    """Return the laws over the done trials; None if no trial has the metric."""
    keys = [name for name in (request.panel, request.by) if name]
    if frame.empty or not {*keys, request.x} <= set(frame.columns):
        return None
    losses: list[pd.DataFrame] = []
    curves: dict[Key, Curve] = {}
    seed_by_group = {}
    by_panel = frame.groupby(request.panel, sort=False) if request.panel else [(None, frame)]
    for panel, panel_trials in by_panel:
        trials = pd.concat(
            losses_at(group_trials, request.x, request.metric).assign(panel=panel, group=group)
            for group, group_trials in panel_trials.groupby(request.by, sort=False, dropna=False)
        )
        if trials.empty:
            continue
        if (p_value := seed_by_group_p(trials)) is not None:
            seed_by_group[panel] = p_value
        curves |= curves_over_seeds(trials)
        losses.append(trials)
    if not curves:
        return None
    laws = {
        key: fit_laws([curve]) for key, curve in curves.items() if len(curve.x_R) >= FEWEST_SIZES
    }
    factors, equals = [], []
    for (panel, group), law in laws.items():
        baseline = laws.get((panel, request.baseline))
        if baseline and baseline is not law:
            key = {"panel": panel, "group": group, "baseline": request.baseline}
            factors.append(key | _factor(law, baseline))
            equals += [key | line for line in _equals(law, baseline)]
    return PowerLawNumbers(
        request=request,
        laws=law_frames(pd.concat(losses), curves, laws),
        factors=add_holm(tidy(factors, ("panel", "group"))),
        equals=add_holm(tidy(equals, ("panel", "group"))),
        seed_by_group_p=seed_by_group,
    )


def law_frames(
    losses: pd.DataFrame,
    curves: Mapping[Key, Curve],
    laws: Mapping[Key, Laws],
    *,
    missing: str = "",
) -> LawFrames:
    """Return data frames of the fitted laws and their curves.

    `missing` is the reason for a curve without a law (default: too few sizes).
    """
    fits, points, bands = [], [], []
    for (panel, group), curve in curves.items():
        key = {"panel": panel, "group": group}
        sizes, law = len(curve.x_R), laws.get((panel, group))
        fit = _fit(law, missing or too_few(FEWEST_SIZES, "sizes", sizes))
        fits.append(key | {"trials": int(curve.count_R.sum()), "sizes": sizes} | fit)
        for index, (x, n) in enumerate(zip(curve.x_R, curve.count_R, strict=True)):
            mean = over_draws(curve.mean_BR[:, index])
            points.append(key | {"x": float(x), "n": int(n)} | estimate_row("mean_loss", mean))
        if law:
            for x in map(float, np.geomspace(curve.x_R[0], curve.x_R[-1], CURVE_POINTS)):
                bands.append(key | {"x": x} | estimate_row("loss", over_draws(law.at(x))))
    return LawFrames(
        fits=tidy(fits),
        points=tidy(points),
        trials=losses,
        band=tidy(bands, ("panel", "group", "x", "loss", "loss_low", "loss_high")),
    )


def _fit(law: Laws | None, missing: str) -> dict[str, Any]:
    limit = exponent = log_factor = Statistic()
    not_pinned = []
    if law:
        with np.errstate(divide="ignore"):
            log_factor = over_draws(np.log(law.factor_KB[0]))
        limit, exponent = over_draws(law.limit_B), over_draws(law.exponent_B)
        bounds = {"E": (limit, (0.0,)), "b": (exponent, EXPONENTS)}
        # The data do not determine a parameter whose value or interval ends at a bound of the fit.
        not_pinned = [name for name, arguments in bounds.items() if _at_bound(*arguments)]
        missing = "" if law.factor_KB[0, 0] else "the loss does not fall as the size grows"
    return {
        **estimate_row("E", limit),
        **estimate_row("b", exponent),
        **estimate_row("log_a", log_factor),
        "misfit_p": lack_of_fit(law) if law else None,
        "not_pinned": " ".join(not_pinned),
        "missing": missing,
    }


def _factor(law: Laws, baseline: Laws) -> dict[str, Any]:
    curves = [*baseline.curves, *law.curves]
    joint = fit_laws(curves)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        factor_B = (joint.factor_KB[1] / joint.factor_KB[0]) ** (-1 / joint.exponent_B)
    separate_squares = baseline.squares_B[0] + law.squares_B[0]
    factor = over_draws(factor_B, null=1.0)
    return {
        **estimate_row("factor", factor),
        "p": factor.p_value,
        "misfit_p": f_test(curves, float(joint.squares_B[0] - separate_squares), df=2),
        "missing": factor.missing,
    }


def _equals(law: Laws, baseline: Laws) -> Iterator[dict[str, Any]]:
    [curve], [baseline_curve] = law.curves, baseline.curves
    draws = min(len(baseline_curve.mean_BR), len(curve.mean_BR))
    span = Interval(float(baseline_curve.x_R[0]), float(baseline_curve.x_R[-1]))
    _, indices, baseline_indices = np.intersect1d(
        curve.x_R, baseline_curve.x_R, return_indices=True
    )
    for index, baseline_index in zip(indices, baseline_indices, strict=True):
        x = float(curve.x_R[index])
        # The baseline's residual from its own law at x is no effect of the group.
        residual_B = baseline_curve.mean_BR[:, baseline_index] - baseline.at(x)
        equal_B = baseline.inverse(
            np.resize(curve.mean_BR[:, index], len(residual_B)) - residual_B
        )[:draws]
        ratio = over_draws(equal_B / x, null=1.0)
        yield {
            "x": x,
            "mean_loss": float(curve.mean_BR[0, index]),
            **estimate_row("equal", over_draws(equal_B)),
            **estimate_row("ratio", ratio),
            "p": ratio.p_value,
            "extrapolated": float(equal_B[0]) not in span,
            "missing": ratio.missing,
        }


def _at_bound(statistic: Statistic, bounds: Sequence[float]) -> bool:
    ends = estimate_row("value", statistic).values()
    return any(
        end is not None
        and math.isclose(end, bound, rel_tol=AT_BOUND, abs_tol=AT_BOUND * (bound == 0))
        for end, bound in product(ends, bounds)
    )
