"""Names of quantities and formats of numbers, the same on terminal, figures and page."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from orchestrator.words import is_number, quoted, some_of
from trainables.config import Goal

CORPORA = {"ptb": "PTB", "wikitext-2": "WikiText-2"}
TITLES = {
    "kind": "model",
    "corpus.name": "corpus",
    "output_layer.name": "output layer",
    "valid_perplexity": "validation perplexity",
    "press_rank": "Press rank",
    "kl_rank": "KL rank (1e-2 nats)",
    "press_tolerance": "Press tolerance",
    "press_eps": "Press eps",
    "peak_memory_mib": "peak memory (MiB)",
    "sigma_max": "largest singular value",
    "rank_rows": "rows of log P",
    "rank_columns": "columns of log P",
    "zero_share": "rows of zeros",
    "singular_share": "singular Jacobians",
    "mean_vanishing_1e-3": "vanishing share of the mean spectrum (1e-3)",
    "log10_condition": "log10 of the condition number",
    "log10_condition_nonzero": "log10 of the condition number, zeros left out",
    "log10_condition_excess": "log10 of the condition number over that of a Gaussian matrix",
    "sigma_middle": "singular value in the middle",
    "sigma_min": "least singular value",
    "first_half_r2": "straightness of the first half (R\N{SUPERSCRIPT TWO})",
    "input_spread": "spread over inputs",
    "test_error_percent": "test error (% of variance)",
    "validation_error_percent": "validation error (% of variance)",
    "train_error_percent": "train error (% of variance)",
    "modes_matched": "modes matched (%)",
    "excess_cross_entropy": "gap to the entropy (nats)",
    "target_entropy": "entropy of the targets (nats)",
    "true_rank": "rank of the measured rows",
    "over_floor": "times the floor",
    "asked": "asked at",
    "holds": "better in the mean",
    "apart": "every trial better",
    "apart_against": "every trial worse",
    "noise_variance": "c",
    "press_rank_predicted": "the law",
    "press_rank_predicted_10000": "the law, n = 10,000",
    "largest_below_in_tolerances": "largest not counted / tolerance",
    "gradient_lost_share": "gradient out of reach (share of its square)",
    "gradient_angle_degrees": "angle of gradient and step (degrees)",
    "gradient_norm_lost": "gradient norm lost",
    "gradient_norm_lost_null": "gradient norm lost by chance",
    "gradient_contexts": "contexts of the gradient",
    "press_rank_float64": "Press rank (float64)",
    "press_rank_float32": "Press rank (float32)",
}
KINDS = {"language_model": "LSTM", "transformer": "Transformer"}
WITH_BOUND = {
    "effective_rank_": "effective rank ({})",
    "vanishing_": "vanishing share (at most {} of the largest)",
    "kl_rank_1e-": "KL rank (1e-{} nats)",
    "kl_at_rank_": "KL at rank {} (nats)",
}
"""Start of a metric's name -> its title. The rest of the name, a number, replaces {}."""
VALUES_SHOWN = 12
LARGEST_WRITTEN = 1e7
"""Larger numbers get an exponent. A diverged model's perplexity, for example, has no meaningful
digits."""
MINUS, DASH = "\N{MINUS SIGN}", "\N{EN DASH}"


def title(name: str) -> str:
    """Return the title of a results column: "output_layer.c" -> "c"."""
    name = name.removeprefix("noisy_")
    if name.startswith("centred_"):
        return f"{title(name.removeprefix('centred_'))} of centred rows"
    for prefix, text in WITH_BOUND.items():
        if name.startswith(prefix):
            return text.format(name.removeprefix(prefix))
    return TITLES.get(name) or name.rpartition(".")[2].replace("_", " ")


def with_unit(name: str, goal: Goal) -> str:
    """Return the title with the unit of the study's metric: "loss (nats)"."""
    return title(name) + f" ({goal.unit})" * bool(goal.unit and name == goal.metric)


def capital(text: str) -> str:
    """Return `text` with a capital first letter."""
    return text[:1].upper() + text[1:]


def heading(name: str) -> str:
    """Return the title of a results column with a capital first letter."""
    return capital(title(name))


def corpus_title(name: str) -> str:
    """Return the corpus' name as papers write it."""
    return CORPORA.get(name, name)


def with_counts(values: Mapping[str, int]) -> str:
    """Return values with their counts of trials, "a (60), b (12)"; a single value gets no count."""
    if len(values) == 1:
        return next(iter(values))
    return some_of(
        [f"{value or 'not recorded'} ({trials})" for value, trials in values.items()], VALUES_SHOWN
    )


def number(value: Any, *, digits: int = 5) -> str:
    """Return `value` with `digits` significant digits and thousands separators; a dash if missing.

    Numbers up to `LARGEST_WRITTEN` keep all digits before the decimal point.
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return DASH
    if not is_number(value):
        return str(value)
    if float(value).is_integer() and abs(value) < 1e15:
        text = f"{int(value):,}"
    elif 1e-3 <= abs(value) < LARGEST_WRITTEN:
        decimals = digits - 1 - math.floor(math.log10(abs(value)))
        text = f"{value:,.{max(decimals, 0)}f}"
    else:
        text = f"{value:,.{digits - 1}g}".replace("inf", "\N{INFINITY}")
    return text.replace("-", MINUS)


def digits(count: int) -> Callable[[Any], str]:
    """Return a function that writes numbers with `count` significant digits."""
    return partial(number, digits=count)


def yes_no(value: bool) -> str:
    """Return "yes" or "no"."""
    return "yes" if value else "no"


def setting(value: Any) -> str:
    """Return a config value as a user types it, such as "-1.5".

    It has no trailing zeros or thousands separators. A kind of model becomes its name in papers,
    and None a dash.
    """
    if value is None:
        return DASH
    text = f"{value:g}" if isinstance(value, float) else KINDS.get(str(value), str(value))
    return text.replace("-", MINUS) if isinstance(value, (int, float)) else text


def named(value: Any) -> str:
    """Return a group's name for a sentence: in quotation marks if it is not a single word."""
    return quoted(setting(value))


def cell(metric: str, value: Any) -> str:
    """Return a metric's value for a table: ranks whole, perplexities with one or two decimals.

    If `metric` is "metric", `value` is a metric's name and becomes its title.
    """
    if metric == "metric":
        return title(value)
    if is_number(value) and metric.endswith("perplexity"):
        form = ".2f" if value < 100 else ",.1f" if value < LARGEST_WRITTEN else ".4g"
        return f"{value:{form}}"
    return number(value, digits=4)


def described(name: str, metrics: Mapping[str, Any], *, trials: int = 1) -> str:
    """Return the lines of a mark's tooltip: name, number of averaged trials, and values."""
    values = [
        f"{title(metric)} {cell(metric, value)}"
        for metric, value in metrics.items()
        if value is not None
    ]
    return "\n".join([name, *([f"mean of {trials} trials"] if trials > 1 else []), *values])


def spread(metric: str, mean: float | None, deviation: float | None) -> str:
    """Return a mean with its standard deviation, if any, to useful decimals: "57.08 +- 0.09"."""
    if mean is None:
        return DASH
    if metric == "parameters":
        # Truncated, not rounded, as papers print it.
        return f"{int(mean) // 10_000 / 100:.2f}M" if mean >= 1e6 else f"{mean / 1e3:.1f}k"
    if deviation is None:
        return cell(metric, mean)
    # Decimals of the value in a cell, but none beyond the deviation's second digit, and enough to
    # show its first.
    text = cell(metric, mean)
    decimals = 0 if "e" in text else len(text.partition(".")[2])
    if deviation > 0:
        first = -math.floor(math.log10(deviation))
        decimals = max(0, first, min(decimals, first + 1))
    return _with_deviation(mean, deviation, decimals)


def printed(metric: str, value: float | None, deviation: float | None) -> str:
    """Return a published mean and deviation with the digits that the paper prints."""
    if value is None or deviation is None:
        return spread(metric, value, None)
    decimals = max(len(f"{number:.10g}".partition(".")[2]) for number in (value, deviation))
    return _with_deviation(value, deviation, decimals)


def _with_deviation(mean: float, deviation: float, decimals: int) -> str:
    text = f"{mean:,.{decimals}f} \N{PLUS-MINUS SIGN} {deviation:,.{decimals}f}"
    return text.replace("-", MINUS)


def coefficient(value: float | None) -> str:
    """Return two decimals with a sign: "+0.48", and "+0.00" for zero; a dash if missing."""
    return DASH if value is None else f"{round(value, 2) + 0.0:+.2f}".replace("-", MINUS)


def interval(low: float, high: float) -> str:
    """Return both ends in brackets: "[+0.28, +0.64]"."""
    return f"[{coefficient(low)}, {coefficient(high)}]"


def percent(share: float | None) -> str:
    """Return a share in per cent: "41%"; near 0 and 100 with a decimal, "0.7%" or "99.6%"."""
    if share is None:
        return DASH
    return f"{share:.1%}" if 0 < share < 0.1 or 0.99 < share < 1 else f"{share:.0%}"


def deviation(variance: float | None) -> str:
    """Return the square root of a variance, to three digits; a dash if missing."""
    return DASH if variance is None else number(math.sqrt(variance), digits=3)


def bounds(least: int, most: int) -> str:
    """Return a range of whole numbers: "2 to 1,024", or "3" if both ends are equal."""
    return f"{most:,}" if least == most else f"{least:,} to {most:,}"


def ranked(values: Mapping[str, float], *, decimals: int = 1) -> str:
    """Return names by ascending value, equal ones together: "softmax 26, lms_plif = mos 53.5".

    Decimals are added until different values look different.
    """
    names: dict[float, list[str]] = {}
    for name in sorted(values, key=values.__getitem__):
        names.setdefault(values[name], []).append(name)
    texts: list[str] = []
    for digits_shown in range(decimals, 10):
        texts = [f"{value:,.{digits_shown}f}".rstrip("0").rstrip(".") for value in names]
        if len(set(texts)) == len(names):
            break
    return ", ".join(
        f"{' = '.join(map(named, equal))} {text}"
        for text, equal in zip(texts, names.values(), strict=True)
    )


def p_value(value: float | None) -> str:
    """Return p with three decimals, or with two digits if below 0.001; a dash if missing."""
    if value is None:
        return DASH
    return f"{value:.3f}" if value >= 0.001 else ("< 1e-15" if value < 1e-15 else f"{value:.1e}")


def p_equals(value: float | None) -> str:
    """Return a p-value for a sentence: "p = 0.012" or "p < 1e-15"."""
    text = p_value(value)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def to_width(value: float, low: float, high: float, *, signed: bool = False) -> str:
    """Round `value` to the second significant digit of half its interval's width."""
    half = (high - low) / 2
    decimals = max(0, 1 - math.floor(math.log10(half))) if half > 0 else 2
    # Adding 0.0 turns a negative zero into zero.
    text = f"{round(value, decimals) + 0.0:{'+' if signed else ''},.{decimals}f}"
    return text.replace("-", MINUS)
