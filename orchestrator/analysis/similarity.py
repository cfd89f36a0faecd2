"""Whose embedding is closer to human judgements of similarity, benchmark by benchmark (Fig. 4 of
AAAI 2021)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.analysis.groups import printed_beside
from orchestrator.analysis.statistics.samples import summarise_sample
from orchestrator.analysis.values import values_by_group
from search_spaces.analyses import Similarity

if TYPE_CHECKING:
    import pandas as pd

PREFIX, PAIRS = "similarity", "pairs "


@dataclass(frozen=True, kw_only=True)
class SimilarityNumbers:
    """Ours, how many pairs each benchmark could use, and those printed for a corpus.

    Of both, Spearman's rho of each benchmark (row) and group (column); NaN where too few pairs are
    known."""

    rho: pd.DataFrame
    pairs: Mapping[str, int]
    corpus: str
    printed: pd.DataFrame


def similarity_numbers(
    frame: pd.DataFrame, request: Similarity, *, corpus: str, tag: str = ""
) -> SimilarityNumbers:
    """Read the metrics of the measurement word_similarity of the done trials; means over the trials
    of a group.

    `tag` is that of the user's own benchmarks.
    """
    import pandas as pd

    prefix = f"{PREFIX}-{tag} " if tag else f"{PREFIX} "
    columns = [name for name in frame.columns if name.startswith(prefix + PAIRS)]
    pairs = {name.removeprefix(prefix + PAIRS): frame[name].dropna() for name in columns}
    groups = list(dict.fromkeys(frame["group"][frame[columns].notna().any(axis=1)]))
    values = {name: values_by_group(frame, prefix + name) for name in pairs}
    rho = {name: [summarise_sample(values[name][group]).mean for group in groups] for name in pairs}
    # The printed values are of other benchmarks than the user's own.
    corpus, printed = printed_beside({} if tag else request.published, corpus)
    return SimilarityNumbers(
        rho=pd.DataFrame.from_dict(rho, orient="index", columns=groups, dtype=float),
        pairs={name: int(used.iloc[0]) for name, used in pairs.items() if len(used)},
        corpus=corpus,
        printed=pd.DataFrame(printed).T.reindex(columns=groups),
    )


def wins(rho: pd.DataFrame) -> pd.DataFrame:
    """On how many benchmarks the group of the row has the greater rho than that of the column."""
    return rho.apply(lambda than: rho.gt(than, axis="index").sum())


def comparisons(rho: pd.DataFrame) -> int:
    """How many comparisons of two groups on one benchmark there are."""
    return sum(math.comb(int(groups), 2) for groups in rho.notna().sum(axis="columns"))
