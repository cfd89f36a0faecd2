"""Each group against its baseline, over the seeds that count, as one family of tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.analysis.groups import corpora_beside, values_by_group
from orchestrator.analysis.statistics.group_comparison import GroupComparison, compare
from orchestrator.analysis.statistics.significance import holm
from search_spaces.analyses import Comparison

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """One group against its baseline."""

    group: str
    baseline: str
    comparison: GroupComparison
    p_adjusted: float | None
    """Of Student's test, after Holm's correction over the family."""
    published: Mapping[str, float]
    """Corpus -> the printed p-value."""


@dataclass(frozen=True, kw_only=True)
class ContrastNumbers:
    """A family of tests."""

    request: Comparison
    corpora: tuple[str, ...]
    contrasts: tuple[Contrast, ...]


def contrast_numbers(frame: pd.DataFrame, request: Comparison, *, corpus: str) -> ContrastNumbers:
    """The tests that a study asks for; groups that the plan does not have are left out."""
    counted = frame if request.seeds is None else frame[frame["seed"].isin(request.seeds)]
    values = values_by_group(counted, request.metric)
    pairs = {
        group: baseline
        for group, baseline in request.baselines.items()
        if group in set(frame["group"]) and baseline in set(frame["group"])
    }
    comparisons = {
        group: compare(values.get(group, []), values.get(baseline, []), names=(group, baseline))
        for group, baseline in pairs.items()
    }
    adjusted = holm([comparison.student.p_value for comparison in comparisons.values()])
    corpora = corpora_beside(request.published, corpus)
    return ContrastNumbers(
        request=request,
        corpora=corpora,
        contrasts=tuple(
            Contrast(
                group=group,
                baseline=baseline,
                comparison=comparisons[group],
                p_adjusted=p_adjusted,
                published={
                    name: request.published[name][group] for name in corpora if group in request.published[name]
                },
            )
            for (group, baseline), p_adjusted in zip(pairs.items(), adjusted, strict=True)
        ),
    )
