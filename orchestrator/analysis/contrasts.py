"""Each group against its baseline as one family of tests, paired by seed."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from orchestrator.analysis.groups import printed_beside
from orchestrator.analysis.statistics.comparisons import GroupComparison, compare
from orchestrator.analysis.statistics.estimates import Statistic
from orchestrator.analysis.tidy_frames import Families, corrected, estimated, tidy
from orchestrator.analysis.values import values_of_done
from search_spaces.analyses import Comparison

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class ContrastNumbers:
    """The answer to a Comparison request: a family of tests, each of a group against its
    baseline."""

    request: Comparison
    corpus: str
    """The corpus of the printed p-values; empty for none."""
    comparisons: pd.DataFrame
    """A row a test; see `comparison_record`."""
    trials: pd.DataFrame
    """A row for each trial of a tested group: group, baseline, name, trial_id, value (less that of
    the baseline at the same seed, or than the baseline's mean if unpaired)."""
    families: ClassVar[Families] = {"comparisons": ("difference_p",)}


def contrast_numbers(frame: pd.DataFrame, request: Comparison, *, corpus: str) -> ContrastNumbers:
    """Return the tests that a study asks for; groups that the plan does not have are left out."""
    counted = frame if request.seeds is None else frame[frame["seed"].isin(request.seeds)]
    by_seed: dict[str, dict[int, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for group, seed, name, trial_id, value in values_of_done(
        counted, request.metric, "group", "seed", "name", "trial_id"
    ):
        by_seed[group][int(seed)].append({"name": name, "trial_id": trial_id, "value": value})
    corpus, printed = printed_beside(request.published, corpus)
    records, differences = [], []
    for names in request.baselines.items():
        if not set(frame["group"]).issuperset(names):
            continue
        a, b = (by_seed[group] for group in names)
        partners = [
            (a[seed][0], b[seed][0]) for seed in a if len(a[seed]) == len(b.get(seed, ())) == 1
        ]
        a_trials, b_trials = ([one for trials in of.values() for one in trials] for of in (a, b))
        test = compare(
            [one["value"] for one in a_trials],
            [one["value"] for one in b_trials],
            [(x["value"], y["value"]) for x, y in partners],
            names=names,
        )
        pairs = partners if test.is_paired else [(one, {"value": test.b.mean}) for one in a_trials]
        differences += [
            {"group": names[0], "baseline": names[1]} | x | {"value": x["value"] - y["value"]}
            for x, y in pairs
            if y["value"] is not None
        ]
        published = {f"published_p_{corpus}": printed.get(names[0])} if printed else {}
        records.append(comparison_record(test) | published)
    return ContrastNumbers(
        request=request,
        corpus=corpus,
        comparisons=corrected(tidy(records, ("group", "baseline")), "difference_p"),
        trials=tidy(differences, ("group", "baseline")),
    )


def comparison_record(comparison: GroupComparison) -> dict[str, Any]:
    """Return the columns of a test: the pairs, both groups, the difference [95%] with its t, df and
    p, holm_p, effect [95%], detectable_difference, equal_within, the unpaired test, and missing
    (why there is no test, or no detectable difference)."""
    a, b, test = comparison.a, comparison.b, comparison.test
    group, baseline = comparison.names
    return {
        "group": group,
        "baseline": baseline,
        "pairs": comparison.differences.n,
        "pairs_lower": comparison.lower,
        "without_partner": comparison.without_partner,
        "n_group": a.n,
        "mean_group": a.mean,
        "sd_group": a.sd,
        "n_baseline": b.n,
        "mean_baseline": b.mean,
        "sd_baseline": b.sd,
        **estimated("correlation", comparison.correlation),
        "test": "paired" if comparison.is_paired else "Welch",
        **_tested("difference", test),
        "sd_difference": comparison.differences.sd,
        "holm_p": None,
        **estimated("effect", comparison.effect),
        "detectable_difference": comparison.detectable.value,
        "equal_within": comparison.smallest_margin.value,
        **_tested("unpaired", comparison.unpaired),
        "missing": test.missing or comparison.detectable.missing,
    }


def _tested(name: str, test: Statistic) -> dict[str, float | None]:
    numbers = {f"{name}_t": test.t, f"{name}_df": test.df, f"{name}_p": test.p_value}
    return estimated(name, test) | numbers
