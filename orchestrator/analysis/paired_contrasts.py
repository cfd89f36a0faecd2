"""Each group against its baseline, pair by pair of one seed, as one family of tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.analysis.groups import values_of_done
from orchestrator.analysis.statistics.pairs import PairComparison, compare_pairs
from orchestrator.analysis.statistics.significance import holm
from search_spaces.analyses import PairedComparison

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class PairedContrast:
    """One group against its baseline."""

    group: str
    baseline: str
    comparison: PairComparison
    p_adjusted: float | None
    """After Holm's correction over the family."""
    unpaired: int
    """Values of either that have no partner: at their seed the other has none, or there are several."""


@dataclass(frozen=True, kw_only=True)
class PairedNumbers:
    """A family of tests."""

    request: PairedComparison
    contrasts: tuple[PairedContrast, ...]


def paired_numbers(frame: pd.DataFrame, request: PairedComparison) -> PairedNumbers:
    """The tests that a study asks for; groups that the plan does not have are left out."""
    groups = set(frame["group"])
    pairs = [pair for pair in request.baselines.items() if groups.issuperset(pair)]
    found, unpaired = [], []
    for group, baseline in pairs:
        a, b = (_by_seed(frame, request.metric, name) for name in (group, baseline))
        seeds = [seed for seed in a if len(a[seed]) == 1 and len(b.get(seed, ())) == 1]
        values = [[one[seed][0] for seed in seeds] for one in (a, b)]
        found.append(compare_pairs(*values, names=(group, baseline)))
        unpaired.append(sum(len(kept) for one in (a, b) for kept in one.values()) - 2 * len(seeds))
    adjusted = holm([comparison.test.p_value for comparison in found])
    return PairedNumbers(
        request=request,
        contrasts=tuple(
            PairedContrast(group=group, baseline=baseline, comparison=comparison, p_adjusted=p_adjusted, unpaired=left)
            for (group, baseline), comparison, p_adjusted, left in zip(pairs, found, adjusted, unpaired, strict=True)
        ),
    )


def _by_seed(frame: pd.DataFrame, metric: str, group: str) -> dict[int, list[float]]:
    """The metric of the group's done trials, by their seeds."""
    found: dict[int, list[float]] = {}
    for name, seed, value in values_of_done(frame, metric, "group", "seed"):
        if name == group:
            found.setdefault(int(seed), []).append(value)
    return found
