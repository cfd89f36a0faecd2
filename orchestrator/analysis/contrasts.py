"""Each group against its baseline as one family of tests, paired by seed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from orchestrator.analysis.groups import printed_beside
from orchestrator.analysis.statistics.comparisons import GroupComparison, compare
from orchestrator.analysis.statistics.estimates import Names
from orchestrator.analysis.statistics.samples import with_holm
from orchestrator.analysis.values import TrialValue, less_mean, values_of_done
from search_spaces.analyses import Comparison

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class ContrastNumbers:
    """A family of tests, each of a group against its baseline."""

    metric: str
    comparisons: tuple[GroupComparison, ...]
    single: Mapping[Names, tuple[TrialValue, ...]]
    """Differences by comparison: from the trial with the same seed, or from the baseline's mean if
    unpaired."""
    corpus: str = ""
    """The corpus of the printed p-values."""
    source: str = ""
    """The published table."""


def contrast_numbers(frame: pd.DataFrame, request: Comparison, *, corpus: str) -> ContrastNumbers:
    """Return the tests that a study asks for; groups that the plan does not have are left out."""
    counted = frame if request.seeds is None else frame[frame["seed"].isin(request.seeds)]
    by_seed: dict[str, dict[int, list[TrialValue]]] = defaultdict(lambda: defaultdict(list))
    for group, seed, name, trial_id, value in values_of_done(
        counted, request.metric, "group", "seed", "name", "trial_id"
    ):
        by_seed[group][int(seed)].append(TrialValue(name=name, trial_id=trial_id, value=value))
    corpus, printed = printed_beside(request.published, corpus)
    comparisons, single = [], {}
    for names in request.baselines.items():
        if not set(frame["group"]).issuperset(names):
            continue
        a, b = (by_seed[group] for group in names)
        partners = [
            (a[seed][0], b[seed][0]) for seed in a if len(a[seed]) == len(b.get(seed, ())) == 1
        ]
        a_trials, b_trials = ([one for trials in of.values() for one in trials] for of in (a, b))
        line = compare(
            [one.value for one in a_trials],
            [one.value for one in b_trials],
            [(x.value, y.value) for x, y in partners],
            names=names,
        )
        comparisons.append(replace(line, published=printed.get(names[0])))
        paired = tuple(replace(x, value=x.value - y.value) for x, y in partners)
        single[names] = paired if line.is_paired else less_mean(a_trials, line.b)
    return ContrastNumbers(
        metric=request.metric,
        comparisons=with_holm(comparisons, "test"),
        single=single,
        corpus=corpus,
        source=request.source,
    )
