"""Mean spectra of layers' Jacobians, and which of the blog post's claims (Orhan 2018) hold of them.

The post gives figures without numbers. Each claim is put as a rule with a number here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from orchestrator.analysis.correlation import Interval
from orchestrator.analysis.groups import values_by_group
from orchestrator.analysis.samples import SampleSummary, summarise_sample
from orchestrator.analysis.significance import SIGNIFICANCE, TTest, holm, interval_of, welch_t
from search_spaces.requests import JacobianSpectra

if TYPE_CHECKING:
    import pandas as pd

Gates = Literal["none", "softmax", "constant"]
HALF = Interval(low=0.45, high=0.55)
"""What counts as about half."""
STRAIGHT_R2 = 0.95
"""Share of the variance from which a decrease counts as roughly linear."""
VANISHING, ENTROPY_RANK = "vanishing_1e-3", "entropy_rank"
"""By what a layer is better conditioned: fewer singular values below a thousandth of the largest, or a spectrum spread
over more of them."""


@dataclass(frozen=True, kw_only=True)
class LayerSpectrum:
    """The spectra of one kind of layer, a trial a seed."""

    group: str
    gates: Gates
    experts: int
    """K; 1 of a dense layer."""
    seeds: int
    mean: NDArray[np.float64] | None
    """Over the seeds, of the mean singular values, descending; None without a done trial."""
    deviation: NDArray[np.float64] | None
    """Over the seeds; None for fewer than two."""
    zero_share: SampleSummary

    @property
    def expected_zero_share(self) -> float:
        """2^-K: of units whose experts are all off, where each is on or off like a fair coin of its own."""
        return 2.0**-self.experts


@dataclass(frozen=True, kw_only=True)
class Step:
    """Whether a layer's metric is lower (or higher, as wanted) than that of the one it is held against."""

    group: str
    baseline: str
    test: TTest
    """Welch's, group less baseline."""
    p_adjusted: float | None
    """By Holm's correction over the claim's steps."""
    wants_lower: bool

    @property
    def decided(self) -> bool:
        """Whether the difference is significant, in either direction."""
        return self.p_adjusted is not None and self.p_adjusted < SIGNIFICANCE

    @property
    def held(self) -> bool:
        """Whether it is so, and significantly."""
        return self.decided and self.test.difference is not None and (self.test.difference < 0) == self.wants_lower


@dataclass(frozen=True, kw_only=True)
class LevelClaim:
    """A claim about one number of the dense layer: its 95% interval over the seeds lies in `wanted`."""

    text: str
    metric: str
    sample: SampleSummary
    interval: Interval | None
    """None for fewer than two seeds."""
    wanted: Interval

    @property
    def held(self) -> bool | None:
        """None where there are too few seeds to say."""
        return None if self.interval is None else self.interval.low in self.wanted and self.interval.high in self.wanted


@dataclass(frozen=True, kw_only=True)
class StepClaim:
    """A claim that a metric moves in one direction from layer to layer."""

    text: str
    metric: str
    steps: tuple[Step, ...]

    @property
    def held(self) -> bool | None:
        """Whether every step holds; None where not one could be tested."""
        if not any(step.p_adjusted is not None for step in self.steps):
            return None
        return all(step.held for step in self.steps)


@dataclass(frozen=True, kw_only=True)
class JacobianNumbers:
    """The spectra and the claims."""

    request: JacobianSpectra
    spectra: tuple[LayerSpectrum, ...]
    """In the order of the plan."""
    levels: tuple[LevelClaim, ...]
    steps: tuple[StepClaim, ...]

    @property
    def has_published(self) -> bool:
        """The post printed no numbers."""
        return False

    @property
    def drawn(self) -> tuple[LayerSpectrum, ...]:
        """Those with at least one done trial."""
        return tuple(each for each in self.spectra if each.mean is not None)


def jacobian_numbers(
    frame: pd.DataFrame, request: JacobianSpectra, *, spectra: Mapping[str, NDArray[np.float64]]
) -> JacobianNumbers:
    """What a JacobianSpectra request asks for; `spectra` are the trials' mean singular values by trial id."""
    layers = tuple(_layer(group, part, spectra) for group, part in frame.groupby("group", sort=False))
    values = {metric: values_by_group(frame, metric) for metric in (VANISHING, ENTROPY_RANK, "first_half_r2")}
    dense = [each.group for each in layers if each.gates == "none"][:1]
    steps = []
    for gates in ("softmax", "constant"):
        ordered = sorted((each for each in layers if each.gates == gates), key=lambda each: each.experts)
        names = [each.group for each in ordered]
        pairs = [(name, baseline) for baseline in dense for name in names]
        breaks = f"{'Constant' if gates == 'constant' else 'Softmax'} gates break the degeneracy of the dense layer"
        steps.append(_step_claim(breaks, VANISHING, pairs, values[VANISHING]))
        grown = list(zip(names[1:], names[:-1], strict=True))
        larger = f"With {gates} gates, more experts are better conditioned"
        steps += [_step_claim(larger, metric, grown, values[metric]) for metric in (VANISHING, ENTROPY_RANK)]
    return JacobianNumbers(
        request=request,
        spectra=layers,
        levels=tuple(claim for name in dense for claim in _dense_claims(name, values)),
        steps=tuple(claim for claim in steps if claim.steps),
    )


def _layer(group: object, part: pd.DataFrame, spectra: Mapping[str, NDArray[np.float64]]) -> LayerSpectrum:
    first = part.iloc[0]
    mixture = first["layer.name"] == "experts"
    done = [row for row in part.to_dict("records") if row["state"] == "done"]
    found = [spectra[row["trial_id"]] for row in done if len(spectra.get(row["trial_id"], ()))]
    stacked = np.stack(found) if found else None
    zero_shares = [row["zero_share"] for row in done if row.get("zero_share") is not None]
    return LayerSpectrum(
        group=str(group),
        gates=first["layer.gates"] if mixture else "none",
        experts=int(first["layer.experts"]) if mixture else 1,
        seeds=len(found),
        mean=None if stacked is None else stacked.mean(axis=0),
        deviation=stacked.std(axis=0, ddof=1) if stacked is not None and len(found) > 1 else None,
        zero_share=summarise_sample(zero_shares),
    )


def _dense_claims(dense: str, values: Mapping[str, Mapping[str, Sequence[float]]]) -> tuple[LevelClaim, LevelClaim]:
    half, straight = summarise_sample(values[VANISHING][dense]), summarise_sample(values["first_half_r2"][dense])
    return (
        LevelClaim(
            text="Of a dense layer, about half of the singular values vanish",
            metric=VANISHING,
            sample=half,
            interval=mean_interval(half),
            wanted=HALF,
        ),
        LevelClaim(
            text="Of a dense layer, they decrease roughly linearly up to the middle one",
            metric="first_half_r2",
            sample=straight,
            interval=mean_interval(straight),
            wanted=Interval(low=STRAIGHT_R2, high=1.0),
        ),
    )


def mean_interval(sample: SampleSummary) -> Interval | None:
    """95%, of a mean by Student's t; None for fewer than two values."""
    if sample.mean is None or sample.sd is None:
        return None
    return interval_of(sample.mean, sample.sd / sample.n**0.5, sample.n - 1)


def _step_claim(
    text: str, metric: str, pairs: Sequence[tuple[str, str]], values: Mapping[str, Sequence[float]]
) -> StepClaim:
    tests = [
        welch_t(summarise_sample(values[group]), summarise_sample(values[baseline]), names=(group, baseline))
        for group, baseline in pairs
    ]
    adjusted = holm([test.p_value for test in tests])
    return StepClaim(
        text=text,
        metric=metric,
        steps=tuple(
            Step(group=group, baseline=baseline, test=test, p_adjusted=p_adjusted, wants_lower=metric == VANISHING)
            for (group, baseline), test, p_adjusted in zip(pairs, tests, adjusted, strict=True)
        ),
    )
