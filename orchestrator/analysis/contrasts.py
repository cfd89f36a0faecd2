"""Each group against its baseline as one family of tests: over the seeds that count, or pair by pair of one seed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from orchestrator.analysis.groups import corpora_beside, values_by_group, values_of_done
from orchestrator.analysis.statistics.comparisons import GroupComparison, PairComparison, compare, compare_pairs
from orchestrator.analysis.statistics.samples import holm
from search_spaces.analyses import Comparison, PairedComparison

if TYPE_CHECKING:
    import pandas as pd

Compared = TypeVar("Compared", GroupComparison, PairComparison)


@dataclass(frozen=True, kw_only=True)
class Contrast(Generic[Compared]):
    """One group against its baseline."""

    group: str
    baseline: str
    comparison: Compared
    p_adjusted: float | None
    """Of the comparison's test, after Holm's correction over the family."""
    published: Mapping[str, float] = field(default_factory=dict)
    """Corpus -> the printed p-value."""
    unpaired: int = 0
    """Values of either that have no partner: at their seed the baseline or the group has none, or several."""


@dataclass(frozen=True, kw_only=True)
class ContrastNumbers(Generic[Compared]):
    """A family of tests."""

    metric: str
    contrasts: tuple[Contrast[Compared], ...]
    source: str = ""
    """The published table."""


def contrast_numbers(frame: pd.DataFrame, request: Comparison, *, corpus: str) -> ContrastNumbers[GroupComparison]:
    """The tests that a study asks for; groups that the plan does not have are left out."""
    counted = frame if request.seeds is None else frame[frame["seed"].isin(request.seeds)]
    values = defaultdict[str, list[float]](list, values_by_group(counted, request.metric))
    pairs = _planned(frame, request.baselines)
    comparisons = [compare(values[group], values[baseline], names=(group, baseline)) for group, baseline in pairs]
    adjusted = holm([comparison.test.p_value for comparison in comparisons])
    printed = {name: request.published[name] for name in corpora_beside(request.published, corpus)}
    contrasts = tuple(
        Contrast(
            group=group,
            baseline=baseline,
            comparison=comparison,
            p_adjusted=p_adjusted,
            published={name: p_values[group] for name, p_values in printed.items() if group in p_values},
        )
        for (group, baseline), comparison, p_adjusted in zip(pairs, comparisons, adjusted, strict=True)
    )
    return ContrastNumbers(metric=request.metric, contrasts=contrasts, source=request.source)


def paired_numbers(frame: pd.DataFrame, request: PairedComparison) -> ContrastNumbers[PairComparison]:
    """The paired tests that a study asks for; groups that the plan does not have are left out."""
    by_seed: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for group, seed, value in values_of_done(frame, request.metric, "group", "seed"):
        by_seed[group][int(seed)].append(value)
    pairs = _planned(frame, request.baselines)
    comparisons, unpaired = [], []
    for group, baseline in pairs:
        a, b = by_seed[group], by_seed[baseline]
        seeds = [seed for seed in a if len(a[seed]) == 1 and len(b.get(seed, ())) == 1]
        comparisons.append(
            compare_pairs([a[seed][0] for seed in seeds], [b[seed][0] for seed in seeds], names=(group, baseline))
        )
        unpaired.append(sum(map(len, (*a.values(), *b.values()))) - 2 * len(seeds))
    adjusted = holm([comparison.test.p_value for comparison in comparisons])
    contrasts = tuple(
        Contrast(group=group, baseline=baseline, comparison=comparison, p_adjusted=p_adjusted, unpaired=alone)
        for (group, baseline), comparison, p_adjusted, alone in zip(pairs, comparisons, adjusted, unpaired, strict=True)
    )
    return ContrastNumbers(metric=request.metric, contrasts=contrasts)


def _planned(frame: pd.DataFrame, baselines: Mapping[str, str]) -> list[tuple[str, str]]:
    return [pair for pair in baselines.items() if set(frame["group"]).issuperset(pair)]
