"""Power laws of the loss over a size, a law for each group, and by what factor of the size each is
like the baseline.

Legend: B draws of other seeds, the first one the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from orchestrator.analysis.statistics.estimates import Interval, Statistic
from orchestrator.analysis.statistics.power_law import (
    AT_BOUND,
    EXPONENTS,
    FEWEST_PLACES,
    Array,
    Curve,
    Laws,
    curves_over_seeds,
    f_test,
    fit_laws,
    lack_of_fit,
    over_draws,
    seed_by_group_p,
)
from orchestrator.analysis.statistics.samples import with_holm
from orchestrator.analysis.values import TrialValue, losses_at
from search_spaces.laws import PowerLaw

if TYPE_CHECKING:
    import pandas as pd

DRAWN_PLACES = 60
"""On x, of a law in a figure."""
LAW_PARAMETERS = 3
NO_LAW = Statistic()


@dataclass(frozen=True, kw_only=True)
class LossPoint:
    """The trials of one x."""

    x: float
    n: int
    mean: float
    """Nats per token."""
    interval: Interval | None
    """Bootstrap over seeds; None where no x has two."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LawFit:
    """One law, or why there is none."""

    panel: Any
    group: Any
    points: tuple[LossPoint, ...]
    trials: tuple[TrialValue, ...] = ()
    places: tuple[float, ...] = ()
    """The x of each of the trials."""
    missing: str = ""
    limit: Statistic = NO_LAW
    """E, nats per token."""
    exponent: Statistic = NO_LAW
    """b."""
    log_factor: Statistic = NO_LAW
    """log a."""
    misfit: float | None = None
    """The p-value of the F-test of what the law leaves against the spread of seeds; None without
    seeds."""
    band: tuple[tuple[float, float, float, float], ...] = ()
    """Places on x with the law there and the ends of its interval."""

    @property
    def not_pinned(self) -> tuple[str, ...]:
        """Which of E and b the data do not hold, as the estimate or an end of the interval lies at
        a bound."""
        words = {"E": (self.limit, (0.0,)), "b": (self.exponent, (EXPONENTS.low, EXPONENTS.high))}
        return tuple(
            name for name, (statistic, bounds) in words.items() if _at_bound(statistic, bounds)
        )


@dataclass(frozen=True, kw_only=True)
class RankFactor:
    """The factor m with which L(x) of a group is the baseline's L(m x), E and b being those of
    both."""

    panel: Any
    group: Any
    factor: Statistic
    """Its p-value is that of m = 1."""
    p_adjusted: float | None = None
    """After Holm's correction over the groups of all panels."""
    misfit: float | None = None
    """The p-value of the F-test of one factor against laws of their own; None without seeds."""


@dataclass(frozen=True, kw_only=True)
class EqualRank:
    """Of a group at one x that the baseline has, too: the x at which the baseline's law has the
    same loss, less what the baseline's trials of that x lie above their law."""

    panel: Any
    group: Any
    x: float
    loss: float
    equal: Statistic
    """Infinite where no x has so low a loss."""
    ratio: Statistic
    """`equal` over x; its p-value is that of a ratio of 1."""
    p_adjusted: float | None = None
    """After Holm's correction over all x, groups and panels."""
    extrapolated: bool = False
    """Whether `equal` lies outside the x that the baseline was trained at."""


@dataclass(frozen=True, kw_only=True)
class PowerLawNumbers:
    """The answer to a PowerLaw request."""

    request: PowerLaw
    fits: tuple[LawFit, ...]
    factors: tuple[RankFactor, ...]
    equals: tuple[EqualRank, ...]
    seed_by_group_p: Mapping[Any, float]
    """Panel -> the p-value of the F-test for an effect of a seed on one group at every x. The
    intervals exclude it."""


def power_law_numbers(frame: pd.DataFrame, request: PowerLaw) -> PowerLawNumbers | None:
    """The laws that a study asks for, over the done trials; None where none has the metric."""
    columns = [*([request.panel] if request.panel else []), request.by]
    if not {*columns, request.x} <= set(frame.columns):
        return None
    fits: dict[tuple[Any, Any], LawFit] = {}
    curves: dict[tuple[Any, Any], Curve] = {}
    laws: dict[tuple[Any, Any], Laws] = {}
    seed_by_group = {}
    for panel in dict.fromkeys(frame[request.panel]) if request.panel else (None,):
        of_panel = frame if panel is None else frame[frame[request.panel] == panel]
        by_group = {
            group: losses_at(of_panel[of_panel[request.by] == group], request.x, request.metric)
            for group in dict.fromkeys(of_panel[request.by])
        }
        groups = [group for group, losses in by_group.items() for _ in losses.trials]
        if not groups:
            continue
        x, values, seeds = (
            [one for losses in by_group.values() for one in getattr(losses, name)]
            for name in ("x", "values", "seeds")
        )
        if (p_value := seed_by_group_p(x, values, seeds, groups)) is not None:
            seed_by_group[panel] = p_value
        drawn = curves_over_seeds(x, values, seeds, groups=groups, parts=[panel] * len(groups))
        for key, curve in drawn.items():
            if len(curve.x_R) >= FEWEST_PLACES:
                curves[key], laws[key] = curve, fit_laws([curve])
            losses = by_group[key[1]]
            fits[key] = replace(
                fit_of(*key, curve, laws.get(key)), trials=losses.trials, places=losses.x
            )
    if not fits:
        return None
    pairs = [
        (panel, group)
        for panel, group in curves
        if group != request.baseline and (panel, request.baseline) in curves
    ]
    factors = [_factor(pair, curves, laws, request) for pair in pairs]
    equals = [line for pair in pairs for line in _equals(pair, curves, laws, request)]
    return PowerLawNumbers(
        request=request,
        fits=tuple(fits.values()),
        factors=with_holm(factors, "factor"),
        equals=with_holm(equals, "ratio"),
        seed_by_group_p=seed_by_group,
    )


def points_of(curve: Curve) -> tuple[LossPoint, ...]:
    """Means at each place with their intervals."""
    return tuple(
        LossPoint(
            x=float(x),
            n=int(n),
            mean=float(curve.mean_BR[0, place]),
            interval=over_draws(curve.mean_BR[:, place]).interval,
        )
        for place, (x, n) in enumerate(zip(curve.x_R, curve.count_R, strict=True))
    )


def _band(laws: Laws, low: float, high: float) -> tuple[tuple[float, float, float, float], ...]:
    """The law at places from low to high, with the ends of its interval, which are the law where
    there are no draws."""
    band = []
    for x in np.geomspace(low, high, DRAWN_PLACES):
        statistic = over_draws(laws.at(float(x)))
        assert statistic.value is not None
        ends = statistic.interval or Interval(low=statistic.value, high=statistic.value)
        band.append((float(x), statistic.value, ends.low, ends.high))
    return tuple(band)


def fit_of(
    panel: Any, group: Any, curve: Curve, laws: Laws | None, *, down_to: float | None = None
) -> LawFit:
    """What a law says of a curve; its band reaches from the least size, or from `down_to`, to the
    largest."""
    points = points_of(curve)
    if laws is None:
        missing = f"a law of {LAW_PARAMETERS} numbers needs {FEWEST_PLACES} different sizes, there {_are(len(points))}"
        return LawFit(panel=panel, group=group, points=points, missing=missing)
    with np.errstate(divide="ignore"):
        log_factor_B: Array = np.log(laws.factor_KB[0])
    return LawFit(
        panel=panel,
        group=group,
        points=points,
        missing="" if laws.factor_KB[0, 0] else "the loss does not fall with the size",
        limit=over_draws(laws.limit_B),
        exponent=over_draws(laws.exponent_B),
        log_factor=over_draws(log_factor_B),
        misfit=lack_of_fit([curve], float(laws.squares_B[0]), LAW_PARAMETERS),
        band=_band(laws, down_to or float(curve.x_R[0]), float(curve.x_R[-1])),
    )


def _factor(
    pair: tuple[Any, Any],
    curves: Mapping[tuple[Any, Any], Curve],
    laws: Mapping[tuple[Any, Any], Laws],
    request: PowerLaw,
) -> RankFactor:
    """a_group (m x)^-b = a_baseline x^-b at m = (a_group / a_baseline)^(-1/b)."""
    panel, group = pair
    both = [curves[panel, request.baseline], curves[pair]]
    joint = fit_laws(both)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        factor_B = (joint.factor_KB[1] / joint.factor_KB[0]) ** (-1 / joint.exponent_B)
    alone = laws[panel, request.baseline].squares_B[0] + laws[pair].squares_B[0]
    return RankFactor(
        panel=panel,
        group=group,
        factor=over_draws(factor_B, null=1.0),
        misfit=f_test(both, float(joint.squares_B[0] - alone), df=2),
    )


def _equals(
    pair: tuple[Any, Any],
    curves: Mapping[tuple[Any, Any], Curve],
    laws: Mapping[tuple[Any, Any], Laws],
    request: PowerLaw,
) -> Iterator[EqualRank]:
    panel, group = pair
    baseline, curve = curves[panel, request.baseline], curves[pair]
    rows = min(len(baseline.mean_BR), len(curve.mean_BR))
    law = laws[panel, request.baseline]
    inside = Interval(low=float(baseline.x_R[0]), high=float(baseline.x_R[-1]))
    _, places, places_of_baseline = np.intersect1d(curve.x_R, baseline.x_R, return_indices=True)
    for place, same in zip(places, places_of_baseline, strict=True):
        x = float(curve.x_R[place])
        # What the baseline itself lies off its law there is no doing of the group's.
        above_B = baseline.mean_BR[:, same] - law.at(x)
        equal_B = law.inverse(np.resize(curve.mean_BR[:, place], len(above_B)) - above_B)[:rows]
        yield EqualRank(
            panel=panel,
            group=group,
            x=x,
            loss=float(curve.mean_BR[0, place]),
            equal=over_draws(equal_B),
            ratio=over_draws(equal_B / x, null=1.0),
            extrapolated=float(equal_B[0]) not in inside,
        )


def _at_bound(statistic: Statistic, bounds: Sequence[float]) -> bool:
    ends = [
        statistic.value,
        *((statistic.interval.low, statistic.interval.high) if statistic.interval else ()),
    ]
    return any(
        end is not None
        and math.isclose(end, bound, rel_tol=AT_BOUND, abs_tol=AT_BOUND * (bound == 0))
        for end, bound in product(ends, bounds)
    )


def _are(count: int) -> str:
    return "is 1" if count == 1 else f"are {count}"
