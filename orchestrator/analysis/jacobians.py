"""Mean spectra of layers' Jacobians, and which claims of the blog post (Orhan 2018) hold.

The post has figures without numbers, so this module turns each claim into a numeric rule.
"""

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

HALF = Interval(0.45, 0.55)
# R^2 that counts as roughly linear. On [0, 1], sqrt(1 - x) has 0.950 and exp(-x) 0.983.
STRAIGHT_R2 = 0.99
# An interval of two values describes only these two.
FEWEST_SEEDS = 3
VANISHING, STRAIGHTNESS = "vanishing_1e-3", "first_half_r2"
LEVELS = (
    ("About half of the dense layer's singular values vanish", VANISHING, HALF),
    (
        "The dense layer's singular values decrease roughly linearly up to the middle one",
        STRAIGHTNESS,
        Interval(STRAIGHT_R2, 1.0),
    ),
)
"""Claims about the dense layer. Each has a text, a metric, and the bounds of the metric if the
claim holds."""
FAMILIES = {"experts": "dense", "non_local": "non-local"}
DEGENERACY = (VANISHING, "vanishing_1e-1")
# A condition number is infinite for a zero row and grows with the number of rows, so use its excess
# over a Gaussian matrix.
CONDITION = (VANISHING, "entropy_rank", "log10_condition_excess")
BETTER_HIGHER = ("entropy_rank",)
Outcome = Literal["held", "did not hold", "not decided"]
NOT_DECIDED: Outcome = "not decided"


@dataclass(frozen=True, kw_only=True)
class JacobianNumbers:
    """Answer to JacobianSpectra."""

    request: JacobianSpectra
    spectra: pd.DataFrame
    """One row per singular value of each measured layer, in plan order; `index` starts at 1,
    `experts` is 1 without a mixture, and `gates` is "none" without a mixture or if they average."""
    zeros: pd.DataFrame
    """Share of each layer's Jacobian rows that are exactly zero. `expected` is 2^-K for K experts
    that are each off with probability 1/2."""
    claims: pd.DataFrame
    """One row per claim and metric. `seeds` is the smallest number of seeds that one of its layers
    has. A claim about one number holds if the 95% interval is within its bounds. A claim about
    `steps` holds if every step does, and fails if one is reversed."""
    steps: pd.DataFrame
    """One row per step: is `layer` better than `against`? `difference` is `layer` minus `against`;
    `holm_p` is corrected over the claim's steps. A step holds if `layer` is significantly better,
    and fails if it is significantly worse."""


def jacobian_numbers(
    frame: pd.DataFrame, request: JacobianSpectra, *, spectra: Mapping[str, NDArray[np.float64]]
) -> JacobianNumbers:
    """Return the spectra and the outcome of each claim.

    `spectra` has mean singular values by trial id. Chains of several layers are excluded.
    """
    if "depth" in frame:
        frame = frame[frame["depth"] == 1]
    layers = [_layer(str(name), trials) for name, trials in frame.groupby("group", sort=False)]
    samples = {
        metric: {
            group: summarise_sample(values)
            for group, values in values_by_group(frame, metric).items()
        }
        for metric in (*DEGENERACY, *CONDITION, STRAIGHTNESS, "zero_share")
    }
    groups: dict[tuple[str, str], list[str]] = {}
    for layer in sorted(layers, key=lambda layer: layer["experts"]):
        groups.setdefault((layer["family"], layer["gates"]), []).append(layer["layer"])
    baselines = groups.get(("dense", "none"), [])[:1]
    steps: list[dict[str, Any]] = []
    for family, gates in product(
        {layer["family"]: None for layer in layers}, ("softmax", "constant")
    ):
        bases, names = (groups.get((family, name), []) for name in ("none", gates))
        degeneracy = f"{gates.capitalize()} gates break the degeneracy of the {family} layer"
        order = f"With {gates} gates, more experts make the {family} layer better conditioned"
        for text, metrics, pairs in (
            (degeneracy, DEGENERACY, [(name, base) for base in bases[:1] for name in names]),
            (order, CONDITION, [(larger, smaller) for smaller, larger in pairwise(names)]),
        ):
            for metric in metrics:
                steps += _steps(text, metric, pairs, samples[metric])
    step_frame = tidy(steps, ("claim", "metric", "seeds"))
    levels = (
        _level(text, metric, bounds, samples[metric][name])
        for name, (text, metric, bounds) in product(baselines, LEVELS)
    )
    step_claims = (
        {"claim": claim, "metric": metric} | _outcome_of_steps(claim_steps)
        for (claim, metric), claim_steps in step_frame.groupby(["claim", "metric"], sort=False)
    )
    layer_spectra = list(_layer_spectra(layers, frame, spectra))
    return JacobianNumbers(
        request=request,
        spectra=tidy(_spectra(layer_spectra)),
        zeros=tidy(
            _zeros(layer, samples["zero_share"])
            for layer, _ in layer_spectra
            if layer["family"] != "non-local"
        ),
        claims=tidy((*levels, *step_claims)),
        steps=step_frame,
    )


def _layer(name: str, trials: pd.DataFrame) -> dict[str, Any]:
    first = trials.iloc[0]
    layer, gates = first["layer.name"], first.get("layer.gates")
    experts = first.get("layer.experts") or 1
    return {
        "layer": name,
        "gates": gates if experts > 1 or gates == "softmax" else "none",
        "experts": int(experts) if experts > 1 else 1,
        "family": FAMILIES.get(layer, layer),
    }


def _layer_spectra(
    layers: Sequence[dict[str, Any]],
    frame: pd.DataFrame,
    spectra: Mapping[str, NDArray[np.float64]],
) -> Iterator[tuple[dict[str, Any], NDArray[np.float64]]]:
    trials = frame[frame["state"] == "done"]
    for layer in layers:
        trial_ids = trials[trials["group"] == layer["layer"]]["trial_id"]
        values = [spectra[trial_id] for trial_id in trial_ids if len(spectra.get(trial_id, ()))]
        if values:
            yield layer | {"seeds": len(values)}, np.array(values)


def _spectra(
    layer_spectra: Sequence[tuple[dict[str, Any], NDArray[np.float64]]],
) -> Iterator[dict[str, Any]]:
    for layer, values_SI in layer_spectra:
        mean_I = np.mean(values_SI, axis=0).tolist()
        deviation_I = [None] * len(mean_I)
        if len(values_SI) > 1:
            deviation_I = np.std(values_SI, axis=0, ddof=1).tolist()
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
    interval = mean_interval(sample)
    return interval and Interval(max(interval.low, 0.0), min(interval.high, 1.0))


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
    adjusted = holm(pd.Series([test.p_value for test in tests], dtype=object))
    for pair, test, p_adjusted in zip(pairs, tests, adjusted, strict=True):
        outcome = NOT_DECIDED
        has_seeds = min(samples[name].n for name in pair) >= FEWEST_SEEDS
        is_significant = has_seeds and p_adjusted is not None and p_adjusted < SIGNIFICANCE
        if is_significant and test.value is not None:
            outcome = "held" if (test.value > 0) == (metric in BETTER_HIGHER) else "did not hold"
        yield {
            "claim": text,
            "metric": metric,
            "seeds": min(samples[name].n for names in pairs for name in names),
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
    alternative = "did not hold" if "did not hold" in outcomes else NOT_DECIDED
    return {
        "seeds": steps["seeds"].iloc[0],
        "outcome": "held" if set(outcomes) == {"held"} else alternative,
        "mean": None,
        **ends("mean", None),
        "comparisons": len(outcomes),
        "held": outcomes.count("held"),
    }
