"""Agreement of embeddings with human judgements of similarity (Fig. 4 of AAAI 2021)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from orchestrator.analysis.groups import printed_values
from orchestrator.analysis.statistics.samples import summarise_sample
from orchestrator.analysis.tidy_frames import tidy, values_by_group
from search_spaces.analyses import Similarity

PREFIX, PAIRS = "similarity", "pairs "


@dataclass(frozen=True, kw_only=True)
class SimilarityNumbers:
    """Answer to Similarity."""

    values: pd.DataFrame
    """One row per benchmark and group. `pairs` counts word pairs in the vocabulary; `rho` is
    Spearman's, the mean over trials."""
    corpus: str


def similarity_numbers(
    frame: pd.DataFrame, request: Similarity, *, corpus: str, tag: str = ""
) -> SimilarityNumbers:
    """Return the done trials' mean rho by benchmark and group.

    A `tag` selects the user's own benchmarks.
    """
    prefix = f"{PREFIX}-{tag} " if tag else f"{PREFIX} "
    columns = [name for name in frame.columns if name.startswith(prefix + PAIRS)]
    pairs = {name.removeprefix(prefix + PAIRS): frame[name].dropna() for name in columns}
    groups = list(dict.fromkeys(frame["group"][frame[columns].notna().any(axis=1)]))
    values = {name: values_by_group(frame, prefix + name) for name in pairs}
    # The paper has no values for the user's benchmarks.
    corpus, printed = printed_values({} if tag else request.published, corpus)
    records = (
        {
            "benchmark": name,
            "pairs": int(pair_counts.iloc[0]) if len(pair_counts) else 0,
            "group": group,
            "rho": summarise_sample(values[name][group]).mean,
            "published": printed.get(name, {}).get(group),
        }
        for name, pair_counts in pairs.items()
        for group in groups
    )
    return SimilarityNumbers(values=tidy(records, ("benchmark", "group")), corpus=corpus)


def rho_matrix(values: pd.DataFrame, source: str) -> pd.DataFrame:
    """Return rho by benchmark (row) and group (column), NaN if missing.

    `source` is the column to use: "rho" or "published".
    """
    matrix = values.pivot(index="benchmark", columns="group", values=source).astype(float)
    return matrix.reindex(
        index=values["benchmark"].unique(), columns=values["group"].unique()
    ).rename_axis(None, axis="columns")


def wins(rho: pd.DataFrame) -> pd.DataFrame:
    """Return on how many benchmarks the row's group has a higher rho than the column's group."""
    return rho.apply(lambda column: rho.gt(column, axis="index").sum())


def comparisons(rho: pd.DataFrame) -> int:
    """Return how many pairs of groups can be compared, summed over the benchmarks."""
    return sum(math.comb(int(groups), 2) for groups in rho.notna().sum(axis="columns"))
