"""Sizes at which the loss of small models departs from the power law of larger models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from orchestrator.analysis.power_laws import LawFrames, law_frames
from orchestrator.analysis.statistics.estimates import POWER, SIGNIFICANCE, Array
from orchestrator.analysis.statistics.power_law import (
    FEWEST_SIZES,
    Curve,
    curves_over_seeds,
    fit_laws,
    over_draws,
)
from orchestrator.analysis.tidy_frames import estimate_row, losses_at, tidy
from orchestrator.words import too_few
from search_spaces.laws import Extrapolation


@dataclass(frozen=True, kw_only=True)
class ExtrapolationNumbers:
    """Answer to Extrapolation. Losses are in nats per token."""

    request: Extrapolation
    laws: LawFrames
    """Law fitted to all sizes larger than the largest one that departs from it; to all sizes if
    none departs."""
    fitted: tuple[float, ...]
    """Sizes to which the law is fitted, ascending; empty if there are too few."""
    held_out: pd.DataFrame
    """One row per size, descending: its loss minus the prediction of the `fitted_to` larger sizes
    (`difference`).

    `leaves` is 1 if the loss is significantly above the law, -1 if below, else 0. The test finds a
    true excess of `detectable` with 80% power. Its correction is Bonferroni's, because each outcome
    decides the next size's law.
    """


def extrapolation_numbers(
    frame: pd.DataFrame, request: Extrapolation
) -> ExtrapolationNumbers | None:
    """Return each loss minus the law of larger sizes; None if no done trial has the metric."""
    losses = losses_at(frame, request.x, request.metric)
    if losses.empty:
        return None
    losses = losses.assign(panel=None, group=None)
    curves = curves_over_seeds(losses)
    [(key, curve)] = curves.items()
    missing = too_few(FEWEST_SIZES + 1, "sizes", len(curve.x_R))
    count, start = len(curve.x_R) - FEWEST_SIZES, 0
    comparisons: list[dict[str, Any]] = []
    for size in range(count - 1, -1, -1):
        comparisons.append(_comparison(curve, size, max(start, size + 1), family=count))
        if comparisons[-1]["leaves"] and not start:
            start = size + 1
    laws = {key: fit_laws([_curve_from(curve, start)])} if comparisons else {}
    return ExtrapolationNumbers(
        request=request,
        laws=law_frames(losses, curves, laws, missing=missing),
        fitted=tuple(map(float, curve.x_R[start:])) if comparisons else (),
        held_out=tidy(comparisons),
    )


def _curve_from(curve: Curve, start: int) -> Curve:
    return replace(
        curve,
        x_R=curve.x_R[start:],
        count_R=curve.count_R[start:],
        mean_BR=curve.mean_BR[:, start:],
    )


def _comparison(curve: Curve, size: int, start: int, *, family: int) -> dict[str, Any]:
    x, loss_B = float(curve.x_R[size]), curve.mean_BR[:, size]
    law = fit_laws([_curve_from(curve, start)])
    difference = over_draws(loss_B - law.at(x), null=0.0)
    p_value = difference.p_value
    adjusted = None if p_value is None else min(1.0, family * p_value)
    is_significant = adjusted is not None and adjusted < SIGNIFICANCE
    return {
        "x": x,
        "n": int(curve.count_R[size]),
        "fitted_to": len(curve.x_R) - start,
        "mean_loss": float(loss_B[0]),
        **estimate_row("predicted", over_draws(law.at(x))),
        **estimate_row("difference", difference),
        "p": p_value,
        "bonferroni_p": adjusted,
        "detectable": _detectable(loss_B - law.at(x), family) if difference.interval else None,
        "leaves": int(np.sign(difference.value or 0.0)) if is_significant else 0,
        "missing": difference.missing,
    }


def _detectable(difference_B: Array, family: int) -> float:
    ends = np.nanquantile(
        difference_B[1:] - difference_B[0], [SIGNIFICANCE / (2 * family), 1 - POWER]
    )
    return -float(ends.sum())
