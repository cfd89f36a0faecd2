"""Analyses of the study `turn_the_rank`: sentences, tables and a figure from its trials.

All are about the logarithm of the test perplexity; its differences are printed in percent of the
perplexity. Seeds are crossed with functions, so every comparison is within seeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trainables.config import TURNS

MODELS = ("LSTM", "Transformer")
PLAIN = "softmax"
NEAR = ("tanh 1000", "softplus 0.01", "tanh 60", "softplus 0.1")
"""Functions whose KL from the identity is below 0.001 nats if they bend a trained softmax."""
MARGIN = 0.004
"""Difference of ln(perplexity) that does not matter."""
LEVEL = 0.05
FEWEST_SEEDS = 3
RANKS = {"press_rank": "Press rank", "kl_rank_1e-2": "KL rank (0.01 nats)"}
PERPLEXITY = "test_perplexity"
Array = NDArray[np.float64]


class Estimate(NamedTuple):
    """Estimate with Student's 95% interval, and its two-sided p value against zero."""

    value: float
    low: float
    high: float
    p: float

    def times(self, factor: float) -> Estimate:
        """Return the estimate in another unit; `factor` must be positive."""
        return Estimate(self.value * factor, self.low * factor, self.high * factor, self.p)

    def percent(self) -> str:
        """Return a difference of logarithms in percent: "+0.21% [-0.04, +0.46]"."""
        value, low, high = (100 * math.expm1(number) for number in self[:3])
        return f"{value:+.2f}% [{low:+.2f}, {high:+.2f}]"

    def factor(self) -> str:
        """Return a difference of logarithms as a factor: "1.020 [0.990, 1.050]"."""
        value, low, high = map(math.exp, self[:3])
        return f"{value:.3f} [{low:.3f}, {high:.3f}]"


def student(value: float, error: float, df: int) -> Estimate:
    """Return an estimate whose error follows Student's t."""
    from scipy.special import stdtr, stdtrit

    half = float(stdtrit(df, 0.975)) * error
    p = 2 * float(stdtr(df, -abs(value) / error)) if error > 0 else float(value == 0)
    return Estimate(value, value - half, value + half, p)


def mean(values_n: Array) -> Estimate:
    """Return the mean of at least two values."""
    n = len(values_n)
    return student(float(values_n.mean()), float(values_n.std(ddof=1)) / math.sqrt(n), n - 1)


def equivalence_p(differences_n: Array, margin: float) -> float:
    """Return the p value of two one-sided t-tests (Schuirmann 1987), the larger of the two."""
    from scipy.stats import ttest_1samp

    below = ttest_1samp(differences_n, margin, alternative="less").pvalue
    above = ttest_1samp(differences_n, -margin, alternative="greater").pvalue
    return float(max(below, above))


def holm(p_values: list[float]) -> list[float]:
    """Return the p values adjusted by Holm (1979), in the given order."""
    order = np.argsort(p_values)
    steps = np.sort(p_values) * np.arange(len(p_values), 0, -1)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return [float(p) for p in adjusted]


def line(x_n: Array, y_n: Array) -> Estimate:
    """Return the least-squares slope of y over x, for at least three points."""
    x_dev = x_n - x_n.mean()
    slope = float(x_dev @ y_n / (x_dev @ x_dev))
    rest_n, df = y_n - y_n.mean() - slope * x_dev, len(x_n) - 2
    return student(slope, math.sqrt(float(rest_n @ rest_n / df / (x_dev @ x_dev))), df)


def slope_within_seeds(x_SF: Array, y_SF: Array) -> Estimate:
    """Return the mean over seeds of each seed's slope over functions."""
    x_dev = x_SF - x_SF.mean(axis=1, keepdims=True)
    return mean((x_dev * y_SF).sum(axis=1) / (x_dev**2).sum(axis=1))


def slope_between_seeds(x_SF: Array, y_SF: Array) -> Estimate:
    """Return the slope over seeds within functions, with a jackknife over seeds (Tukey 1958)."""

    def slope(rows: Any) -> float:
        x_dev, y_dev = (values - values.mean(axis=0) for values in (x_SF[rows], y_SF[rows]))
        return float((x_dev * y_dev).sum() / (x_dev**2).sum())

    count = len(x_SF)
    left_out = np.array([slope(np.arange(count) != seed) for seed in range(count)])
    error = math.sqrt((count - 1) * float(left_out.var()))
    return student(slope(slice(None)), error, count - 1)


def logarithms(results: Any, metric: str, model: str) -> Any:
    """Return ln(metric) by seed (row) and function (column) of one kind of model.

    Seeds without one of the trained functions are left out.
    """
    functions = {f"{model} {function}": function for function in (PLAIN, *TURNS)}
    rows = results[results["group"].isin(list(functions))]
    table = rows.pivot_table(index="seed", columns="group", values=metric)
    table = table[[group for group in functions if group in table]].dropna()
    return np.log(table.astype(float).rename(columns=functions))


def _models(results: Any) -> Iterator[tuple[str, Any]]:
    """Yield each kind of model, with its losses, if enough seeds have softmax and a function."""
    for model in MODELS:
        losses = logarithms(results, PERPLEXITY, model)
        if len(losses) >= FEWEST_SEEDS and PLAIN in losses and len(losses.columns) > 1:
            yield model, losses


def _rank_and_loss(results: Any, metric: str, model: str, losses: Any) -> tuple[Array, Array]:
    ranks = logarithms(results, metric, model)
    common = ranks.index.intersection(losses.index)
    columns = [name for name in losses.columns if name in ranks]
    x_SF, y_SF = (table.loc[common, columns].to_numpy() for table in (ranks, losses))
    return x_SF, y_SF


def equivalence(results: Any) -> list[Any]:
    """Compare each function's ln(test perplexity) with that of the softmax of the same seed.

    Equivalent: two one-sided t-tests reject a difference of more than 0.4% of the perplexity, with
    p < 0.05 after Holm's correction over the table. Different: the 95% interval excludes zero.
    Near functions, marked by a star, were named before the study ran; their KL from the identity is
    below 0.001 nats.
    """
    rows, p_values, sentences = [], [], []
    for model, losses in _models(results):
        for function in losses.columns.drop(PLAIN):
            difference = (losses[function] - losses[PLAIN]).to_numpy()
            estimate = mean(difference)
            p_values.append(equivalence_p(difference, MARGIN))
            rows.append(
                {
                    "model": model,
                    "function": function + " *" * (function in NEAR),
                    "seeds": len(difference),
                    "perplexity, more than softmax [95%]": estimate.percent(),
                    "equivalence p (Holm)": 1.0,
                    "different": "yes" if estimate.low > 0 or estimate.high < 0 else "not shown",
                }
            )
    if not rows:
        return ["There are not enough seeds with softmax and another function yet."]
    for row, p in zip(rows, holm(p_values), strict=True):
        row |= {"equivalence p (Holm)": p, "equivalent": "yes" if p < LEVEL else "not shown"}
    table = results.from_records(rows)
    for model, of_model in table.groupby("model", sort=False):
        near = of_model[of_model["function"].isin([f"{function} *" for function in NEAR])]
        count = int((near["equivalent"] == "yes").sum())
        sentences.append(
            f"{model}: {count} of {len(NEAR)} near functions are equivalent to softmax within "
            f"{100 * MARGIN:g}% of the perplexity."
        )
    return [*sentences, table, *_figures(results)]


def _figures(results: Any) -> Iterator[Any]:
    """Yield a figure per kind of model: perplexity against Press rank."""
    for model, losses in _models(results):
        ranks, axes = logarithms(results, "press_rank", model), None
        for family, marker in (("tanh", "o"), ("softplus", "s")):
            names = [name for name in losses if name.startswith(family) and name in ranks]
            estimates = [
                mean((losses[name] - losses[PLAIN]).to_numpy()).times(100) for name in names
            ]
            points = results.from_records(
                [
                    {
                        "Press rank": math.exp(ranks[name].mean()),
                        "perplexity, % more than softmax": estimate.value,
                        "error": estimate.high - estimate.value,
                    }
                    for name, estimate in zip(names, estimates, strict=True)
                ]
            )
            if not points.empty:
                axes = points.plot.scatter(
                    *points.columns[:2],
                    yerr="error",
                    marker=marker,
                    logx=True,
                    label=family,
                    ax=axes,
                )
        if axes is not None:
            axes.axhspan(-100 * MARGIN, 100 * MARGIN, color="0.9", zorder=0)
            axes.figure.suptitle(f"{model}: perplexity by Press rank, 95% intervals over seeds")
            yield axes.figure


def dose_response(results: Any) -> list[Any]:
    """Fit a line to ln(test perplexity) over the logarithm of a rank, over the functions.

    The change is the slope times the distance of the lowest and the highest mean rank. Over seeds:
    each seed has a line of its own; Student's interval of their mean holds for these functions.
    A seed with the same rank for all functions has no line; the column "seeds" counts the others.
    Over functions: one line through the functions' means; its interval also holds for functions of
    which these are a sample.
    """
    rows = []
    for model, losses in _models(results):
        for metric, rank in RANKS.items():
            x_SF, y_SF = _rank_and_loss(results, metric, model, losses)
            mean_F = x_SF.mean(axis=0)
            span = float(np.ptp(mean_F))
            has_line_S = np.ptp(x_SF, axis=1) > 0
            if has_line_S.sum() < FEWEST_SEEDS or len(mean_F) < 3:
                continue
            over_seeds = slope_within_seeds(x_SF[has_line_S], y_SF[has_line_S]).times(span)
            over_functions = line(mean_F, y_SF.mean(axis=0)).times(span)
            rows.append(
                {
                    "model": model,
                    "rank": rank,
                    "seeds": int(has_line_S.sum()),
                    "lowest": math.exp(mean_F.min()),
                    "highest": math.exp(mean_F.max()),
                    "change of perplexity [95% over seeds]": over_seeds.percent(),
                    "p (seeds)": over_seeds.p,
                    "change of perplexity [95% over functions]": over_functions.percent(),
                    "p (functions)": over_functions.p,
                }
            )
    if not rows:
        return ["There are not enough seeds and functions for a line yet."]
    return [
        *(
            f"{row['model']}: from a {row['rank']} of {row['lowest']:.0f} to {row['highest']:.0f}, "
            f"the perplexity changes by {row['change of perplexity [95% over functions]']} "
            "(over functions)."
            for row in rows
        ),
        results.from_records(rows),
    ]


def bent_after_training(results: Any) -> list[Any]:
    """Compare models trained with a function with a softmax bent by it only after training.

    Both have the same seed. Ratios are geometric means over seeds with 95% intervals. KL is that of
    the bent from the unbent softmax, in nats per context.
    """
    rows = []
    for model, _ in _models(results):
        softmax = results[results["group"] == f"{model} {PLAIN}"].set_index("seed")
        for function in TURNS:
            trained = results[results["group"] == f"{model} {function}"].set_index("seed")
            names = ("press_rank", PERPLEXITY, "kl_from_softmax")
            if trained.empty or f"turned {function} {names[0]}" not in softmax:
                continue
            bent = softmax[[f"turned {function} {name}" for name in names]]
            bent = bent.set_axis([f"{name} bent" for name in names], axis=1)
            pairs = trained[list(names[:2])].join(bent).dropna()
            if len(pairs) < FEWEST_SEEDS:
                continue
            ratio, change = (
                mean(np.log(pairs[name] / pairs[f"{name} bent"]).to_numpy(float))
                for name in names[:2]
            )
            rows.append(
                {
                    "model": model,
                    "function": function,
                    "seeds": len(pairs),
                    "KL (nats)": pairs["kl_from_softmax bent"].mean(),
                    "Press rank, trained": pairs["press_rank"].mean(),
                    "Press rank, bent after": pairs["press_rank bent"].mean(),
                    "ratio [95%]": ratio.factor(),
                    "perplexity, trained against bent [95%]": change.percent(),
                }
            )
    return [results.from_records(rows)] if rows else ["No trained softmax has been bent yet."]


def between_seeds(results: Any) -> list[Any]:
    """Fit a line to ln(test perplexity) over the logarithm of a rank, over seeds within functions.

    All functions share one slope, and each has a level of its own. The 95% interval is a jackknife
    over seeds. The change is that for a rank higher by 10%.
    """
    rows = []
    for model, losses in _models(results):
        for metric, rank in RANKS.items():
            x_SF, y_SF = _rank_and_loss(results, metric, model, losses)
            if len(x_SF) < FEWEST_SEEDS or not np.ptp(x_SF, axis=0).any():
                continue
            estimate = slope_between_seeds(x_SF, y_SF).times(math.log(1.1))
            rows.append(
                {
                    "model": model,
                    "rank": rank,
                    "seeds": len(x_SF),
                    "functions": x_SF.shape[1],
                    "change of perplexity for +10% of rank [95%]": estimate.percent(),
                    "p": estimate.p,
                }
            )
    return [results.from_records(rows)] if rows else ["There are not enough seeds for a line yet."]
