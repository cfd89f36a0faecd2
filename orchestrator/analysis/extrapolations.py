"""Where the loss of narrow models leaves the power law that is fitted to wider ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from orchestrator.analysis.power_laws import LawFit, fit_of, points_of
from orchestrator.analysis.statistics.estimates import POWER, SIGNIFICANCE, Statistic
from orchestrator.analysis.statistics.power_law import (
    FEWEST_PLACES,
    Array,
    Curve,
    curves_over_seeds,
    fit_laws,
    over_draws,
)
from orchestrator.analysis.values import losses_at
from search_spaces.laws import Extrapolation

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """A size that is held against the law of the larger ones: all of them, or those above the first
    that left it."""

    x: float
    n: int
    loss: float
    fitted: int
    """To how many larger sizes that law is fitted."""
    predicted: Statistic
    """By their law."""
    difference: Statistic
    """Loss less prediction in nats per token: positive where the narrow model is worse than the law
    says. Its p-value is that of no difference."""
    detectable: float | None = None
    """The smallest true excess that the corrected test finds in 80% of the draws; None without
    seeds."""
    p_adjusted: float | None = None
    """After Bonferroni's correction over the sizes held out: which of them are judged by which law
    is decided from the largest to the least, so that no correction may depend on what comes
    later."""

    @property
    def leaves(self) -> int:
        """1 where the loss is above the law, -1 where it is below, 0 where the two are not told
        apart."""
        if (
            self.p_adjusted is None
            or self.p_adjusted >= SIGNIFICANCE
            or self.difference.value is None
        ):
            return 0
        return 1 if self.difference.value > 0 else -1


@dataclass(frozen=True, kw_only=True)
class ExtrapolationNumbers:
    """The answer to an Extrapolation request."""

    request: Extrapolation
    fit: LawFit
    """To the sizes above the first one that leaves the law, or to all; its points are those of all
    sizes, and its band reaches down to the least."""
    fitted: tuple[float, ...]
    """The sizes that it was fitted to, ascending; none where there are too few."""
    held_out: tuple[HeldOut, ...]
    """From the largest to the least."""

    @property
    def first(self) -> HeldOut | None:
        """The largest size whose loss is not the law's."""
        return next((line for line in self.held_out if line.leaves), None)


def extrapolation_numbers(
    frame: pd.DataFrame, request: Extrapolation
) -> ExtrapolationNumbers | None:
    """The differences that a study asks for, over the done trials; None where none has the
    metric."""
    losses = losses_at(frame, request.x, request.metric)
    if not losses.trials:
        return None
    alone = [None] * len(losses.trials)
    curve = curves_over_seeds(losses.x, losses.values, losses.seeds, groups=alone, parts=alone)[
        None, None
    ]
    sizes = len(curve.x_R)
    if sizes <= FEWEST_PLACES:
        missing = (
            f"the law is fitted to {FEWEST_PLACES} sizes or more and a smaller one is held out, "
            f"there are {sizes} "
            "in all"
        )
        fit = LawFit(
            panel=None,
            group=None,
            points=points_of(curve),
            missing=missing,
            trials=losses.trials,
            places=losses.x,
        )
        return ExtrapolationNumbers(request=request, fit=fit, fitted=(), held_out=())
    count, from_place = sizes - FEWEST_PLACES, 0
    held_out: list[HeldOut] = []
    for place in range(count - 1, -1, -1):
        held_out.append(_held_out(curve, place, max(from_place, place + 1), family=count))
        if held_out[-1].leaves and not from_place:
            from_place = place + 1
    wide = _above(curve, from_place)
    fit = fit_of(None, None, wide, fit_laws([wide]), down_to=float(curve.x_R[0]))
    return ExtrapolationNumbers(
        request=request,
        fit=replace(fit, points=points_of(curve), trials=losses.trials, places=losses.x),
        fitted=tuple(map(float, wide.x_R)),
        held_out=tuple(held_out),
    )


def _detectable(difference_B: Array, family: int) -> float:
    """The excess whose corrected interval leaves out zero in 80% of repetitions, if these deviate
    as the draws do."""
    ends = np.nanquantile(
        difference_B[1:] - difference_B[0], [SIGNIFICANCE / (2 * family), 1 - POWER]
    )
    return -float(ends.sum())


def _above(curve: Curve, place: int) -> Curve:
    """From this place on."""
    return replace(
        curve,
        x_R=curve.x_R[place:],
        count_R=curve.count_R[place:],
        mean_BR=curve.mean_BR[:, place:],
    )


def _held_out(curve: Curve, place: int, from_place: int, *, family: int) -> HeldOut:
    """The size at this place against the law of those from another place on, with Bonferroni's
    correction."""
    x, loss_B = float(curve.x_R[place]), curve.mean_BR[:, place]
    law = fit_laws([_above(curve, from_place)])
    difference = over_draws(loss_B - law.at(x), null=0.0)
    return HeldOut(
        x=x,
        n=int(curve.count_R[place]),
        loss=float(loss_B[0]),
        fitted=len(curve.x_R) - from_place,
        predicted=over_draws(law.at(x)),
        difference=difference,
        detectable=_detectable(loss_B - law.at(x), family) if difference.interval else None,
        p_adjusted=None if difference.p_value is None else min(1.0, family * difference.p_value),
    )
