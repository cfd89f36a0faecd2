"""Mean spectra of layers' Jacobians, and which claims of the blog post (Orhan 2018) hold.

The post has figures without numbers, so each claim is a rule with a number here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from orchestrator.analysis.statistics.estimates import SIGNIFICANCE, Interval
from orchestrator.analysis.statistics.samples import (
    SampleSummary,
    holm,
    mean_interval,
    summarise_sample,
    t_test,
)
from orchestrator.analysis.tidy_frames import ends, tidy, values_by_group
from search_spaces.analyses import JacobianSpectra

HALF = Interval(low=0.45, high=0.55)
"""Bounds of "about half"."""
STRAIGHT_R2 = 0.99
"""R^2 from which a decrease is roughly linear: over 0 to 1, sqrt(1 - x) has 0.950 and exp(-x)
0.983."""
FEWEST_SEEDS = 3
"""Minimum for a verdict: an interval of two values describes these, not the layer."""
VANISHING, STRAIGHTNESS = "vanishing_1e-3", "first_half_r2"
LEVELS = (
    ("About half of the dense layer's singular values vanish", VANISHING, HALF),
    (
        "The dense layer's singular values decrease roughly linearly up to the middle one",
        STRAIGHTNESS,
        Interval(low=STRAIGHT_R2, high=1.0),
    ),
)
"""Claim about the dense layer, its metric (a share), and bounds within which it holds."""
BREAKING = (VANISHING, "vanishing_1e-1")
"""Metrics of degeneracy: shares of singular values below 1e-3 or 1e-1 of the largest."""
CONDITION = (VANISHING, "entropy_rank", "log10_condition_excess")
"""Metrics of conditioning. The condition number is infinite for a zero row and otherwise grows with
the number of rows, so it is compared with a Gaussian matrix'."""
BETTER_HIGHER = ("entropy_rank",)
Outcome = Literal["held", "did not hold", "not decided"]
NOT_DECIDED: Outcome = "not decided"
"""Neither the claim nor its opposite was shown."""


@dataclass(frozen=True, kw_only=True)
class JacobianNumbers:
    """Answer to a JacobianSpectra request."""

    request: JacobianSpectra
    spectra: pd.DataFrame
    """One row per singular value of each measured layer, in plan order: layer, gates (none, softmax
    or constant), experts (K; 1 if dense), seeds, index (from 1), mean_singular_value (over seeds,
    descending), deviation_over_seeds."""
    zeros: pd.DataFrame
    """One row per layer, share of exactly zero Jacobian rows: layer, seeds, expected (2^-K, if each
    expert is off with probability 1/2), mean [95%]."""
    claims: pd.DataFrame
    """One row per claim, single numbers first: claim, metric, seeds (fewest of a layer), outcome,
    mean [95%] (single numbers: holds if within the bounds), comparisons and held (steps: holds if
    every step does, fails if one is reversed)."""
    steps: pd.DataFrame
    """One row per step: claim, metric, seeds, layer, against, difference (layer minus against),
    welch_t, welch_p, holm_p (over the claim's steps), outcome (layer significantly better, worse,
    or neither), missing."""


def jacobian_numbers(
    frame: pd.DataFrame, request: JacobianSpectra, *, spectra: Mapping[str, NDArray[np.float64]]
) -> JacobianNumbers:
    """Return the spectra and the outcome of each claim. `spectra` has mean singular values by trial
    id."""
    layers = [_layer(str(name), trials) for name, trials in frame.groupby("group", sort=False)]
    samples = {
        metric: {
            group: summarise_sample(values)
            for group, values in values_by_group(frame, metric).items()
        }
        for metric in (*BREAKING, *CONDITION, STRAIGHTNESS, "zero_share")
    }
    dense = [layer["layer"] for layer in layers if layer["gates"] == "none"][:1]
    steps: list[dict[str, Any]] = []
    for gates in ("softmax", "constant"):
        mixtures = [layer for layer in layers if layer["gates"] == gates]
        names = [layer["layer"] for layer in sorted(mixtures, key=lambda layer: layer["experts"])]
        breaks = f"{gates.capitalize()} gates break the degeneracy of the dense layer"
        more = f"With {gates} gates, more experts are better conditioned"
        for text, metrics, pairs in (
            (breaks, BREAKING, [(name, baseline) for baseline in dense for name in names]),
            (more, CONDITION, [(larger, smaller) for smaller, larger in pairwise(names)]),
        ):
            for metric in metrics:
                steps += _steps(text, metric, pairs, samples[metric])
    tested = tidy(steps, ("claim", "metric"))
    levels = (
        _level(text, metric, bounds, samples[metric][name])
        for name, (text, metric, bounds) in product(dense, LEVELS)
    )
    of_steps = (
        {"claim": claim, "metric": metric} | _outcome_of_steps(of_claim)
        for (claim, metric), of_claim in tested.groupby(["claim", "metric"], sort=False)
    )
    measured = list(_measured(layers, frame, spectra))
    return JacobianNumbers(
        request=request,
        spectra=tidy(_spectra(measured)),
        zeros=tidy(_zeros(layer, samples["zero_share"]) for layer, _ in measured),
        claims=tidy((*levels, *of_steps)),
        steps=tested,
    )


def _layer(name: str, trials: pd.DataFrame) -> dict[str, Any]:
    first = trials.iloc[0]
    if first["layer.name"] != "experts":
        return {"layer": name, "gates": "none", "experts": 1}
    return {"layer": name, "gates": first["layer.gates"], "experts": int(first["layer.experts"])}


def _measured(
    layers: Sequence[dict[str, Any]],
    frame: pd.DataFrame,
    spectra: Mapping[str, NDArray[np.float64]],
) -> Iterator[tuple[dict[str, Any], NDArray[np.float64]]]:
    done = frame[frame["state"] == "done"]
    for layer in layers:
        trial_ids = done[done["group"] == layer["layer"]]["trial_id"]
        values = [spectra[one] for one in trial_ids if len(spectra.get(one, ()))]
        if values:
            yield layer | {"seeds": len(values)}, np.array(values)


def _spectra(
    measured: Sequence[tuple[dict[str, Any], NDArray[np.float64]]],
) -> Iterator[dict[str, Any]]:
    for layer, values_SI in measured:
        mean_I = np.mean(values_SI, axis=0).tolist()
        several = len(values_SI) > 1
        deviation_I = (
            np.std(values_SI, axis=0, ddof=1).tolist() if several else [None] * len(mean_I)
        )
        for index, (mean, deviation) in enumerate(zip(mean_I, deviation_I, strict=True), start=1):
            numbers = {"mean_singular_value": mean, "deviation_over_seeds": deviation}
            yield layer | {"index": index} | numbers


def _zeros(layer: Mapping[str, Any], samples: Mapping[str, SampleSummary]) -> dict[str, Any]:
    shares = samples[layer["layer"]]
    interval = _share_interval(shares) if shares.n >= FEWEST_SEEDS and shares.sd else None
    return {
        "layer": layer["layer"],
        "seeds": layer["seeds"],
        "expected": 2.0 ** -layer["experts"],
        "mean": shares.mean,
        **ends("mean", interval),
    }


def _share_interval(sample: SampleSummary) -> Interval | None:
    unbounded = mean_interval(sample)
    return unbounded and Interval(low=max(unbounded.low, 0.0), high=min(unbounded.high, 1.0))


def _level(text: str, metric: str, bounds: Interval, sample: SampleSummary) -> dict[str, Any]:
    interval, outcome = _share_interval(sample), NOT_DECIDED
    if interval is not None and sample.n >= FEWEST_SEEDS:
        if interval.low in bounds and interval.high in bounds:
            outcome = "held"
        elif interval.high < bounds.low or interval.low > bounds.high:
            outcome = "did not hold"
    return {
        "claim": text,
        "metric": metric,
        "seeds": sample.n,
        "outcome": outcome,
        "mean": sample.mean,
        **ends("mean", interval),
        "comparisons": 0,
        "held": 0,
    }


def _steps(
    text: str, metric: str, pairs: Sequence[tuple[str, str]], samples: Mapping[str, SampleSummary]
) -> Iterator[dict[str, Any]]:
    tests = [
        t_test(samples[group], samples[baseline], names=(group, baseline))
        for group, baseline in pairs
    ]
    adjusted = holm([test.p_value for test in tests])
    for pair, test, p_adjusted in zip(pairs, tests, adjusted, strict=True):
        outcome = NOT_DECIDED
        enough = min(samples[name].n for name in pair) >= FEWEST_SEEDS
        is_shown = enough and p_adjusted is not None and p_adjusted < SIGNIFICANCE
        if is_shown and test.value is not None:
            outcome = "held" if (test.value > 0) == (metric in BETTER_HIGHER) else "did not hold"
        yield {
            "claim": text,
            "metric": metric,
            "seeds": min(samples[name].n for one in pairs for name in one),
            "layer": pair[0],
            "against": pair[1],
            "difference": test.value,
            "welch_t": test.t,
            "welch_p": test.p_value,
            "holm_p": p_adjusted,
            "outcome": outcome,
            "missing": test.missing,
        }


def _outcome_of_steps(steps: pd.DataFrame) -> dict[str, Any]:
    outcomes = list(steps["outcome"])
    contrary = "did not hold" if "did not hold" in outcomes else NOT_DECIDED
    return {
        "seeds": steps["seeds"].iloc[0],
        "outcome": "held" if set(outcomes) == {"held"} else contrary,
        "mean": None,
        **ends("mean", None),
        "comparisons": len(outcomes),
        "held": outcomes.count("held"),
    }
