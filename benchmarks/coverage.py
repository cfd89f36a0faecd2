"""Share of 95% intervals that contain the truth, by simulation of the studies at scale quick.

    python -m benchmarks.coverage --draws 1000

Simulated losses follow a known law. Normal noise is drawn per trial (`rest`), per seed (`common`),
per seed and size (`shared`), or per seed and group (`by layer`). The rows of a grid have random
effects, independent or smooth over the rows. The intervals ignore `by layer` noise
and smooth effects.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from orchestrator.analysis import (
    Curve,
    Interval,
    Statistic,
    correlate,
    curves_over_seeds,
    fit_laws,
    over_blocks,
    over_draws,
    rows,
    threshold_numbers,
)
from search_spaces.catalog import load_study
from search_spaces.laws import Threshold
from search_spaces.spam import QUICK

HEAD_RANKS = (2, 4, 8, 15, 31, 61)
WIDTHS = (8, 12, 16, 24, 32, 40, 48, 64, 80, 96)
NOISE: Mapping[str, Mapping[str, float]] = {
    "independent": {"rest": 0.006},
    "common": {"rest": 0.006, "common": 0.006},
    "shared": {"rest": 0.004, "shared": 0.01},
}
BY_LAYER = {"rest": 0.006, "common": 0.006, "by_layer": 0.006}
"""`by_layer` shifts all losses of one layer and seed by the same random amount."""
SPAM = {
    "softmax": (1.0, 0.42),
    "sigsoftmax": (1.0, 0.42),
    "gss": (1.0, 0.42),
    "mos": (1.25, 0.38),
    "softcap": (1.5, 0.46),
}
"""Factor a and exponent b. The simulated gap to the entropy is 0.1 nats at width a V^b."""
RESAMPLES = 999


def simulated_curves(
    rng: np.random.Generator,
    sizes: tuple[int, ...],
    factors: tuple[float, ...],
    *,
    seeds: int,
    limit: float,
    exponent: float,
    rest: float,
    common: float = 0.0,
    shared: float = 0.0,
    by_layer: float = 0.0,
) -> list[Curve]:
    """Return a curve per factor m, with simulated losses limit + (m x)^-exponent plus noise."""
    effect_S = rng.normal(0, common, seeds)
    shared_RS = rng.normal(0, shared, (len(sizes), seeds))
    layer_GS = (
        rng.normal(0, by_layer, (len(factors), seeds))
        if by_layer
        else np.zeros((len(factors), seeds))
    )
    rows = [
        (
            x,
            limit
            + (factor * x) ** -exponent
            + effect_S[s]
            + layer_GS[g, s]
            + shared_RS[r, s]
            + rng.normal(0, rest),
            s,
            g,
        )
        for (g, factor), (r, x), s in product(enumerate(factors), enumerate(sizes), range(seeds))
    ]
    trials = pd.DataFrame(rows, columns=["x", "loss", "seed", "group"]).assign(panel=None)
    return list(curves_over_seeds(trials, resamples=RESAMPLES).values())


def head_rank(
    rng: np.random.Generator, noise: Mapping[str, float]
) -> Iterator[tuple[str, Statistic, float]]:
    factors = (1.0, 0.95, *[1.0] * 5)
    first, second, *_ = simulated_curves(
        rng, HEAD_RANKS, factors, seeds=2, limit=4.45, exponent=0.8, **noise
    )
    laws = fit_laws([first, second])
    with np.errstate(divide="ignore", invalid="ignore"):
        yield (
            "factor",
            over_draws((laws.factor_KB[1] / laws.factor_KB[0]) ** (-1 / laws.exponent_B)),
            0.95,
        )
    yield from _law("head_rank", first, 4.45, 0.8)


def saturation(
    rng: np.random.Generator, noise: Mapping[str, float]
) -> Iterator[tuple[str, Statistic, float]]:
    [curve] = simulated_curves(rng, WIDTHS, (1.0,), seeds=3, limit=4.36, exponent=0.59, **noise)
    yield from _law("saturation", curve, 4.36, 0.59)


def _law(
    design: str, curve: Curve, limit: float, exponent: float
) -> Iterator[tuple[str, Statistic, float]]:
    laws = fit_laws([curve])
    yield f"{design} E", over_draws(laws.limit_B), limit
    yield f"{design} b", over_draws(laws.exponent_B), exponent


def spam(
    rng: np.random.Generator, *, rest: float, common: float, curvature: float
) -> Iterator[tuple[str, Statistic, float]]:
    """Yield the ratio of each layer's needed width to softmax's, and the true ratio.

    Unless `curvature` is 0, the log of the gap is not linear in the log of the width.
    """
    effect_S = rng.normal(0, common, 3)
    trials: dict[str, dict[str, Any]] = {}
    for symbols, widths, layers, seeds in QUICK:
        for width, layer, seed in product(widths, layers, range(seeds)):
            factor, exponent = SPAM[layer]
            u = math.log(width / (factor * symbols**exponent))
            gap = (
                math.log(0.1)
                - 3 * u
                - curvature * u * abs(u)
                + rng.normal(0, rest)
                + effect_S[seed]
            )
            name = f"{layer} V={symbols} d={width} seed={seed}"
            trials[name] = {
                "name": name,
                "state": "done",
                "seed": seed,
                "corpus.name": f"spam-{symbols}",
                "output_layer.name": layer,
                "model.embedding_width": width,
                "excess_cross_entropy": math.exp(gap),
            }
    [request] = [
        request for request in load_study("spam").analyses if isinstance(request, Threshold)
    ]
    numbers = threshold_numbers(pd.DataFrame(trials.values()), request)
    assert numbers is not None
    for point in rows(numbers.points):
        if point.ratio_low is not None:
            factor, exponent = SPAM[point.group]
            ratio = Statistic(interval=Interval(point.ratio_low, point.ratio_high))
            yield "threshold ratio", ratio, factor * point.z**exponent / point.z**0.42


def gss_grid(
    rng: np.random.Generator, columns: int, *, length: float
) -> Iterator[tuple[str, Statistic, float]]:
    """Simulate a grid of nine random rows and fixed columns; yield the correlation r of x and y.

    Each cell is a mean of three seeds. The true r is that of infinitely many rows. A Gaussian
    kernel of `length` rows correlates the rows' effects; 0 makes them independent.
    """
    rows, slope, noise = 9, 0.4, 0.5 / math.sqrt(3)
    t_K = np.linspace(-1, 1, columns)
    fixed_2K = 0.5 * np.stack([t_K, t_K**2 - np.mean(t_K**2)])
    covariance_22, distance_RR = (
        np.array([[1.0, 0.6], [0.6, 1.0]]),
        np.subtract.outer(np.arange(rows), np.arange(rows)),
    )
    kernel_RR = np.exp(-0.5 * (distance_RR / length) ** 2) if length else np.eye(rows)
    root_RR, root_22 = (
        np.linalg.cholesky(kernel_RR + 1e-9 * np.eye(rows)),
        np.linalg.cholesky(covariance_22),
    )
    level_2R, slope_2R = (
        scale * root_22 @ rng.standard_normal((2, rows)) @ root_RR.T for scale in (1, slope)
    )
    x_n, y_n = (
        level_2R[:, :, None]
        + slope_2R[:, :, None] * t_K
        + fixed_2K[:, None, :]
        + noise * rng.standard_normal((2, rows, columns))
    ).reshape(2, -1)
    truth_22 = (
        covariance_22 * (1 + slope**2 * np.mean(t_K**2))
        + fixed_2K @ fixed_2K.T / columns
        + np.eye(2) * noise**2
    )
    grid = pd.DataFrame({"x": x_n, "y": y_n, "c": np.repeat(np.arange(rows), columns)})
    statistic = over_blocks(lambda part: correlate(part["x"], part["y"]), grid, "c")
    yield (
        f"grid 9 x {columns} r",
        statistic,
        float(truth_22[0, 1] / math.sqrt(truth_22[0, 0] * truth_22[1, 1])),
    )


def coverage(draws: int, *, seed: int = 0) -> dict[tuple[str, str], tuple[float, int]]:
    """Return the share of intervals that contain the truth, and their number.

    Keys are the name of the statistic and of the noise.
    """
    rng, grid_rng = np.random.default_rng(seed), np.random.default_rng(seed + 1)
    hits: dict[tuple[str, str], list[bool]] = {}

    def add(noise: str, results: Iterator[tuple[str, Statistic, float]]) -> None:
        for name, statistic, truth in results:
            if statistic.interval is not None:
                hits.setdefault((name, noise), []).append(truth in statistic.interval)

    for _ in range(draws):
        for columns, (name, length) in product(
            (3, 8), (("independent", 0), ("smooth 1", 1), ("smooth 2", 2))
        ):
            add(name, gss_grid(grid_rng, columns, length=length))
        add("by layer", head_rank(grid_rng, BY_LAYER))
    for _ in range(draws):
        for name, noise in NOISE.items():
            add(name, head_rank(rng, noise))
            add(name, saturation(rng, noise))
        add("independent", spam(rng, rest=0.08, common=0.0, curvature=0.0))
        add("common", spam(rng, rest=0.05, common=0.08, curvature=0.0))
        add("curved", spam(rng, rest=0.08, common=0.0, curvature=3.0))
    return {key: (float(np.mean(values)), len(values)) for key, values in hits.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--draws", type=int, default=1_000, metavar="N", help="simulated studies (default: 1000)"
    )
    for (name, noise), (share, count) in sorted(coverage(parser.parse_args().draws).items()):
        print(f"{name:16} {noise:12} {share:6.1%} of {count}")


if __name__ == "__main__":
    main()
