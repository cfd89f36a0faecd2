"""Mean spectra of layers' Jacobians, and which of the blog post's claims (Orhan 2018) hold of them.

The post gives figures without numbers. Each claim is put as a rule with a number here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from orchestrator.analysis.statistics.estimates import SIGNIFICANCE, Interval, Statistic
from orchestrator.analysis.statistics.samples import (
    SampleSummary,
    holm,
    mean_interval,
    summarise_sample,
    t_test,
)
from orchestrator.analysis.values import values_by_group
from search_spaces.analyses import JacobianSpectra

if TYPE_CHECKING:
    import pandas as pd

Gates = Literal["none", "softmax", "constant"]
HALF = Interval(low=0.45, high=0.55)
"""What counts as about half."""
STRAIGHT_R2 = 0.99
"""Share of the variance from which a decrease counts as roughly linear: sqrt(1 - x) over 0 to 1 has
0.950 and exp(-x) 0.983."""
FEWEST_SEEDS = 3
"""Below it no claim gets a verdict: an interval of two values says more of the two than of the
layer."""
VANISHING, STRAIGHTNESS = "vanishing_1e-3", "first_half_r2"
LEVELS = (
    ("Of a dense layer, about half of the singular values vanish", VANISHING, HALF),
    (
        "Of a dense layer, they decrease roughly linearly up to the middle one",
        STRAIGHTNESS,
        Interval(low=STRAIGHT_R2, high=1.0),
    ),
)
"""A claim about the dense layer, the share that it is about, and between which bounds it then
lies."""
BREAKING = (VANISHING, "vanishing_1e-1")
"""By what a layer is less degenerate than another: fewer singular values below a thousandth, or a
tenth, of the largest."""
CONDITION = (VANISHING, "entropy_rank", "log10_condition_excess")
"""By what a layer is better conditioned than another. The condition number itself is infinite where
a row is zero, and without the zeros it grows with the rows that are left, whatever they hold: so it
is held against a Gaussian matrix'."""
BETTER_HIGHER = ("entropy_rank",)
Outcome = Literal["held", "did not hold", "not decided"]
NOT_DECIDED: Outcome = "not decided"
"""Neither the claim nor its opposite is shown."""


@dataclass(frozen=True, kw_only=True)
class LayerSpectrum:
    """The spectra of one kind of layer, a trial a seed."""

    group: str
    gates: Gates
    experts: int
    """K; 1 of a dense layer."""
    seeds: int
    mean: NDArray[np.float64]
    """Over the seeds, of the mean singular values, descending; empty without a done trial."""
    deviation: NDArray[np.float64] | None
    """Over the seeds; None for fewer than two."""
    zero_share: SampleSummary

    @property
    def expected_zero_share(self) -> float:
        """2^-K: of units whose experts are all off, where each is on or off like a fair coin of its
        own."""
        return 2.0**-self.experts


@dataclass(frozen=True, kw_only=True)
class Step:
    """Whether a layer's metric is better than that of the one it is held against."""

    group: str
    baseline: str
    test: Statistic
    """Welch's, group less baseline."""
    p_adjusted: float | None
    """By Holm's correction over the claim's steps."""
    outcome: Outcome
    """Whether it is significantly so, significantly the other way, or neither."""


@dataclass(frozen=True, kw_only=True)
class LayerClaim:
    """A claim, and whether it holds: of one number of the dense layer, or of a metric from layer to
    layer."""

    text: str
    metric: str
    seeds: int
    """Of the layer that has the fewest."""
    outcome: Outcome
    sample: SampleSummary | None = None
    """Of a claim about one number, which holds where the 95% interval over the seeds lies within
    its bounds."""
    interval: Interval | None = None
    """None for fewer than two seeds."""
    steps: tuple[Step, ...] = ()
    """Of a claim that holds where every step does, and does not where one goes the other way."""


@dataclass(frozen=True, kw_only=True)
class JacobianNumbers:
    """The spectra and the claims."""

    request: JacobianSpectra
    spectra: tuple[LayerSpectrum, ...]
    """In the order of the plan, those with a done trial."""
    claims: tuple[LayerClaim, ...]
    """Those about one number first."""


def jacobian_numbers(
    frame: pd.DataFrame, request: JacobianSpectra, *, spectra: Mapping[str, NDArray[np.float64]]
) -> JacobianNumbers:
    """What a JacobianSpectra request asks for; `spectra` are the trials' mean singular values by
    trial id."""
    layers = tuple(
        _layer(group, trials, spectra) for group, trials in frame.groupby("group", sort=False)
    )
    samples = {
        metric: {
            group: summarise_sample(values)
            for group, values in values_by_group(frame, metric).items()
        }
        for metric in dict.fromkeys((*BREAKING, *CONDITION, STRAIGHTNESS))
    }
    dense = [layer.group for layer in layers if layer.gates == "none"][:1]
    claims = [
        _level_claim(text, metric, bounds, samples[metric][name])
        for name in dense
        for text, metric, bounds in LEVELS
    ]
    for gates in ("softmax", "constant"):
        mixtures = sorted(
            (layer for layer in layers if layer.gates == gates), key=lambda layer: layer.experts
        )
        names = [layer.group for layer in mixtures]
        breaks = f"{gates.capitalize()} gates break the degeneracy of the dense layer"
        more = f"With {gates} gates, more experts are better conditioned"
        against_dense = [(name, baseline) for baseline in dense for name in names]
        against_fewer = [(larger, smaller) for smaller, larger in pairwise(names)]
        for text, metrics, pairs in (
            (breaks, BREAKING, against_dense),
            (more, CONDITION, against_fewer),
        ):
            claims += [
                _step_claim(text, metric, pairs, samples[metric]) for metric in metrics if pairs
            ]
    spectra_there = tuple(layer for layer in layers if layer.seeds)
    return JacobianNumbers(request=request, spectra=spectra_there, claims=tuple(claims))


def _layer(
    group: object, trials: pd.DataFrame, spectra: Mapping[str, NDArray[np.float64]]
) -> LayerSpectrum:
    first = trials.iloc[0]
    mixture = first["layer.name"] == "experts"
    done = [row for row in trials.to_dict("records") if row["state"] == "done"]
    measured = [spectra[row["trial_id"]] for row in done if len(spectra.get(row["trial_id"], ()))]
    return LayerSpectrum(
        group=str(group),
        gates=first["layer.gates"] if mixture else "none",
        experts=int(first["layer.experts"]) if mixture else 1,
        seeds=len(measured),
        mean=np.mean(measured, axis=0) if measured else np.empty(0),
        deviation=np.std(measured, axis=0, ddof=1) if len(measured) > 1 else None,
        zero_share=summarise_sample(
            [row["zero_share"] for row in done if row.get("zero_share") is not None]
        ),
    )


def share_interval(sample: SampleSummary) -> Interval | None:
    """95%, of a mean of shares by Student's t, as far as it is possible; None for fewer than two
    values."""
    unbounded = mean_interval(sample)
    return unbounded and Interval(low=max(unbounded.low, 0.0), high=min(unbounded.high, 1.0))


def _level_claim(text: str, metric: str, bounds: Interval, sample: SampleSummary) -> LayerClaim:
    interval, outcome = share_interval(sample), NOT_DECIDED
    if interval is not None and sample.n >= FEWEST_SEEDS:
        if interval.low in bounds and interval.high in bounds:
            outcome = "held"
        elif interval.high < bounds.low or interval.low > bounds.high:
            outcome = "did not hold"
    return LayerClaim(
        text=text, metric=metric, seeds=sample.n, outcome=outcome, sample=sample, interval=interval
    )


def _step_claim(
    text: str, metric: str, pairs: Sequence[tuple[str, str]], samples: Mapping[str, SampleSummary]
) -> LayerClaim:
    tests = [
        t_test(samples[group], samples[baseline], names=(group, baseline))
        for group, baseline in pairs
    ]
    adjusted = holm([test.p_value for test in tests])
    seeds = min(samples[name].n for pair in pairs for name in pair)
    steps = []
    for (group, baseline), test, p_adjusted in zip(pairs, tests, adjusted, strict=True):
        outcome = NOT_DECIDED
        enough = min(samples[group].n, samples[baseline].n) >= FEWEST_SEEDS
        if (
            enough
            and test.value is not None
            and p_adjusted is not None
            and p_adjusted < SIGNIFICANCE
        ):
            outcome = "held" if (test.value > 0) == (metric in BETTER_HIGHER) else "did not hold"
        steps.append(
            Step(group=group, baseline=baseline, test=test, p_adjusted=p_adjusted, outcome=outcome)
        )
    outcomes = {step.outcome for step in steps}
    contrary = "did not hold" if "did not hold" in outcomes else NOT_DECIDED
    outcome = "held" if outcomes == {"held"} else contrary
    return LayerClaim(text=text, metric=metric, seeds=seeds, outcome=outcome, steps=tuple(steps))
