"""Significance tests of each group against its baseline, paired by seed, with Holm's correction."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from orchestrator.analysis.groups import printed_values
from orchestrator.analysis.statistics.correlation import correlate
from orchestrator.analysis.statistics.estimates import Names, Statistic
from orchestrator.analysis.statistics.samples import (
    FEWEST,
    SampleSummary,
    difference_of_means,
    obstacle,
    student_difference,
    summarise_sample,
    t_test,
    welch_difference,
)
from orchestrator.analysis.tidy_frames import (
    Families,
    add_holm,
    estimate_row,
    test_row,
    tidy,
    values_of_done,
)
from orchestrator.words import too_few
from search_spaces.analyses import Comparison

FEWEST_PAIRS = 2


@dataclass(frozen=True, kw_only=True)
class ContrastNumbers:
    """Answer to Comparison."""

    request: Comparison
    corpus: str
    comparisons: pd.DataFrame
    trials: pd.DataFrame
    """One row per trial. `value` is its metric minus the baseline's metric at the same seed or, if
    unpaired, minus the baseline's mean."""
    means: Mapping[str, float]
    """Mean of the metric by group, the best first."""
    lead: Mapping[str, Any] | None
    """Result of `compare` for the best two groups; None if there are fewer."""
    families: ClassVar[Families] = {"comparisons": ("difference_p",)}


def contrast_numbers(frame: pd.DataFrame, request: Comparison, *, corpus: str) -> ContrastNumbers:
    """Return a test for each requested pair of which the plan has both groups."""
    selection = frame if request.seeds is None else frame[frame["seed"].isin(request.seeds)]
    values = values_of_done(selection, request.metric, "group", "seed", "name")
    corpus, printed = printed_values(request.published, corpus)
    records, trials = [], [values[:0].assign(baseline=None)]
    sign = request.goal.sign(request.metric)
    means = values.groupby("group")["value"].mean().sort_values(key=lambda mean: mean * sign)
    best = means.index[:2]
    for names in request.baselines.items():
        if not set(frame["group"]).issuperset(names):
            continue
        test, a, pairs = _compare(values, names)
        if test["test"] != "paired":
            pairs = a.assign(value_baseline=test["mean_baseline"]).dropna(subset=["value_baseline"])
        difference = pairs["value"] - pairs["value_baseline"]
        trials.append(pairs.assign(baseline=names[1], value=difference))
        published_columns = {f"published_p_{corpus}": printed.get(names[0])} if printed else {}
        records.append(test | published_columns)
    return ContrastNumbers(
        request=request,
        corpus=corpus,
        comparisons=add_holm(tidy(records, ("group", "baseline")), "difference_p"),
        trials=pd.concat(trials),
        means={str(group): float(mean) for group, mean in means.items()},
        lead=_compare(values, (best[0], best[1]))[0] if len(best) > 1 else None,
    )


def _compare(values: pd.DataFrame, names: Names) -> tuple[Any, pd.DataFrame, pd.DataFrame]:
    a, b = (values[values["group"] == name] for name in names)
    a_by_seed, b_by_seed = (group.drop_duplicates("seed", keep=False) for group in (a, b))
    pairs = a_by_seed.merge(b_by_seed[["seed", "value"]], on="seed", suffixes=("", "_baseline"))
    value_pairs = pairs[["value", "value_baseline"]]
    return compare(a["value"], b["value"], value_pairs, names=names), a, pairs


def compare(
    a_values: ArrayLike,
    b_values: ArrayLike,
    pairs: ArrayLike = (),
    *,
    names: Names = ("a", "b"),
) -> dict[str, Any]:
    """Compare group a with the baseline b: as pairs if `pairs` has at least FEWEST_PAIRS.

    Return counts, means and deviations of both groups, and:

    - correlation [95%]: Pearson's r of the pairs.
    - test: "paired" (Student's t-test, 1908) or "Welch".
    - difference [95%]: mean of a minus mean of b, with t, df and p.
    - effect [95%]: Hedges' g. Its unit is the deviation of the differences if paired (g_z), else
      the pooled deviation.
    - detectable_difference: see `Estimate.detectable_value`; needs FEWEST pairs or values per
      group.
    - equal_within: see `Estimate.smallest_margin`.
    - unpaired [95%]: Student's unpaired t-test over all values, as in the paper.

    Raises ValueError if a number is not finite.
    """
    a, b = summarise_sample(a_values), summarise_sample(b_values)
    paired_a, paired_b = np.reshape(np.asarray(pairs, dtype=np.float64), (-1, 2)).T
    differences = summarise_sample(paired_a - paired_b)
    is_paired = differences.n >= FEWEST_PAIRS
    if is_paired:
        value, shortage = differences.mean, too_few(FEWEST, "pairs", differences.n)
        missing = _spread_obstacle(differences, float(np.abs([paired_a, paired_b]).max()), names)
    else:
        value, missing = difference_of_means(a, b), obstacle(a, b, names=names)
        shortage = obstacle(a, b, names=names, fewest=FEWEST)
    test, effect, margin, detectable = Statistic(value=value), Statistic(), None, None
    if not missing:
        if is_paired:
            estimate = differences.estimate()
            assert differences.sd is not None
            effect = estimate.effect(differences.sd)
        else:
            estimate, (student, sd) = welch_difference(a, b), student_difference(a, b)
            effect = student.effect(sd)
        test, margin = estimate.test(), estimate.smallest_margin()
        detectable = None if shortage else estimate.detectable_value()
    unpaired_test = t_test(a, b, equal_variances=True, names=names)
    return {
        "group": names[0],
        "baseline": names[1],
        "pairs": differences.n,
        "pairs_lower": int((paired_a < paired_b).sum()),
        "without_partner": a.n + b.n - 2 * differences.n,
        "n_group": a.n,
        "mean_group": a.mean,
        "sd_group": a.sd,
        "n_baseline": b.n,
        "mean_baseline": b.mean,
        "sd_baseline": b.sd,
        **estimate_row("correlation", correlate(paired_a, paired_b, names=names)),
        "test": "paired" if is_paired else "Welch",
        **test_row("difference", test),
        "difference_t": test.t,
        "sd_difference": differences.sd,
        **estimate_row("effect", effect),
        "detectable_difference": detectable,
        "equal_within": margin,
        **test_row("unpaired", unpaired_test),
        "unpaired_t": unpaired_test.t,
        "missing": missing or shortage,
    }


def _spread_obstacle(differences: SampleSummary, largest: float, names: Names) -> str:
    if (differences.sd or 0.0) >= max(sys.float_info.min, 8 * sys.float_info.epsilon * largest):
        return ""
    count = "both pairs" if differences.n == 2 else f"all {differences.n} pairs"
    return f"{names[0]} minus {names[1]} is the same in {count}, so there is no spread for a test"
