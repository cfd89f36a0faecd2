"""Each group against its baseline as one family of tests: over the seeds that count, or pair by pair of one seed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from orchestrator.analysis.groups import printed_beside
from orchestrator.analysis.statistics.comparisons import GroupComparison, PairComparison, compare, compare_pairs
from orchestrator.analysis.statistics.estimates import Names
from orchestrator.analysis.statistics.samples import with_holm
from orchestrator.analysis.values import TrialValue, less_mean, trials_by_group, values_of_done
from search_spaces.analyses import Comparison, PairedComparison

if TYPE_CHECKING:
    import pandas as pd

Compared = TypeVar("Compared", GroupComparison, PairComparison)


@dataclass(frozen=True, kw_only=True)
class ContrastNumbers(Generic[Compared]):
    """A family of tests, each of a group against its baseline."""

    metric: str
    comparisons: tuple[Compared, ...]
    single: Mapping[Names, tuple[TrialValue, ...]]
    """By the names of a comparison, what its difference is the mean of: what each trial of the group has above the
    baseline's mean, or above its partner."""
    corpus: str = ""
    """Whose printed p-values stand beside."""
    source: str = ""
    """The published table."""


def contrast_numbers(frame: pd.DataFrame, request: Comparison, *, corpus: str) -> ContrastNumbers[GroupComparison]:
    """The tests that a study asks for; groups that the plan does not have are left out."""
    counted = frame if request.seeds is None else frame[frame["seed"].isin(request.seeds)]
    trials = defaultdict[str, tuple[TrialValue, ...]](tuple, trials_by_group(counted, request.metric))
    values = {group: [one.value for one in trials[group]] for group in frame["group"]}
    corpus, printed = printed_beside(request.published, corpus)
    comparisons = [
        replace(compare(values[group], values[baseline], names=(group, baseline)), published=printed.get(group))
        for group, baseline in _planned(frame, request.baselines)
    ]
    return ContrastNumbers(
        metric=request.metric,
        comparisons=with_holm(comparisons, "test"),
        single={line.names: less_mean(trials[line.names[0]], line.b) for line in comparisons},
        corpus=corpus,
        source=request.source,
    )


def paired_numbers(frame: pd.DataFrame, request: PairedComparison) -> ContrastNumbers[PairComparison]:
    """The paired tests that a study asks for; groups that the plan does not have are left out."""
    by_seed: dict[str, dict[int, list[TrialValue]]] = defaultdict(lambda: defaultdict(list))
    for group, seed, *trial in values_of_done(frame, request.metric, "group", "seed", "name", "trial_id"):
        name, trial_id, value = trial
        by_seed[group][int(seed)].append(TrialValue(name=name, trial_id=trial_id, value=value))
    comparisons, single = [], {}
    for group, baseline in _planned(frame, request.baselines):
        a, b = by_seed[group], by_seed[baseline]
        seeds = [seed for seed in a if len(a[seed]) == 1 and len(b.get(seed, ())) == 1]
        pairs = [(a[seed][0], b[seed][0]) for seed in seeds]
        comparison = compare_pairs([x.value for x, _ in pairs], [y.value for _, y in pairs], names=(group, baseline))
        single[comparison.names] = tuple(replace(x, value=x.value - y.value) for x, y in pairs)
        values = sum(map(len, (*a.values(), *b.values())))
        comparisons.append(replace(comparison, unpaired=values - 2 * len(seeds)))
    return ContrastNumbers(metric=request.metric, comparisons=with_holm(comparisons, "test"), single=single)


def _planned(frame: pd.DataFrame, baselines: Mapping[str, str]) -> Iterator[Names]:
    return (pair for pair in baselines.items() if set(frame["group"]).issuperset(pair))
