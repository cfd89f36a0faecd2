"""Whose embedding is closer to human judgements of similarity, benchmark by benchmark (Fig. 4 of AAAI 2021)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.analysis.groups import corpora_beside, values_by_group
from orchestrator.analysis.statistics.samples import summarise_sample
from search_spaces.analyses import Similarity

if TYPE_CHECKING:
    import pandas as pd

PREFIX, PAIRS = "similarity", "pairs "


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Spearman's rho of each benchmark (row) and group (column); None where too few pairs are known."""

    benchmarks: tuple[str, ...]
    groups: tuple[str, ...]
    rho: tuple[tuple[float | None, ...], ...]

    def wins(self) -> tuple[tuple[int, ...], ...]:
        """`wins[i][j]`: on how many benchmarks the i-th group has the greater rho than the j-th."""
        return tuple(
            tuple(sum(_greater(row[i], row[j]) for row in self.rho) for j in range(len(self.groups)))
            for i in range(len(self.groups))
        )

    def compared(self) -> int:
        """How many comparisons of two groups on one benchmark there are."""
        return sum(math.comb(sum(value is not None for value in row), 2) for row in self.rho)


@dataclass(frozen=True, kw_only=True)
class SimilarityNumbers:
    """Ours, how many pairs each benchmark could use, and the printed ones by corpus."""

    scores: Scores
    pairs: Mapping[str, int]
    published: Mapping[str, Scores]


def similarity_numbers(frame: pd.DataFrame, request: Similarity, *, corpus: str, tag: str = "") -> SimilarityNumbers:
    """Read the metrics of the measurement word_similarity of the done trials; means over the trials of a group.

    `tag` is that of the user's own benchmarks.
    """
    prefix = f"{PREFIX}-{tag} " if tag else f"{PREFIX} "
    columns = {name: name.removeprefix(prefix) for name in frame.columns if name.startswith(prefix)}
    benchmarks = {name: column for column, name in columns.items() if not name.startswith(PAIRS)}
    pairs = {name.removeprefix(PAIRS): column for column, name in columns.items() if name.startswith(PAIRS)}
    names = tuple(pairs)
    by_benchmark = {name: values_by_group(frame, benchmarks.get(name, "")) for name in names}
    measured = frame[frame[list(pairs.values())].notna().any(axis=1)] if pairs else frame[:0]
    groups = tuple(dict.fromkeys(measured["group"]))
    return SimilarityNumbers(
        scores=Scores(
            benchmarks=names,
            groups=groups,
            rho=tuple(tuple(summarise_sample(by_benchmark[name][group]).mean for group in groups) for name in names),
        ),
        pairs={name: int(frame[pairs[name]].dropna().iloc[0]) for name in names if frame[pairs[name]].notna().any()},
        published={}
        if tag  # the printed values are of other benchmarks
        else {name: _printed(request.published[name], groups) for name in corpora_beside(request.published, corpus)},
    )


def _printed(benchmarks: Mapping[str, Mapping[str, float]], groups: Sequence[str]) -> Scores:
    return Scores(
        benchmarks=tuple(benchmarks),
        groups=tuple(groups),
        rho=tuple(tuple(row.get(group) for group in groups) for row in benchmarks.values()),
    )


def _greater(one: float | None, than: float | None) -> bool:
    return one is not None and than is not None and one > than
