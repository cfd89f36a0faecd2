"""The true rank of a generated language: which metric finds it, and in which matrix."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from orchestrator.analysis import LEARNED, PRESS_BY_EPS, TrueRankNumbers, rows, tidy
from orchestrator.report import formats
from orchestrator.report.columns import Table
from orchestrator.report.findings import Finding, describe
from orchestrator.report.forest import Forest
from orchestrator.report.prose import prose
from orchestrator.report.sections.section import Section

VARIANTS = {
    "float64": "the exact matrix (float64)",
    "float32": "the matrix rounded to float32",
    "noise": "the matrix with noise of float32's size",
}


def true_rank_section(numbers: TrueRankNumbers) -> Section:
    """Return the section of a TrueRank request."""
    true = numbers.true_rank
    table = Table(
        caption=f"Ranks (true rank: {true}), and test perplexity above the floor",
        frame=numbers.matrices,
        columns=["matrix", *numbers.metrics, "test_perplexity", "over_floor"],
        file="true_rank.csv",
    )
    figure = Forest(
        name="true_rank",
        caption="Ranks of the true log-P matrix and of the learned ones, by metric. The dashed "
        f"line is the true rank, {true}.",
        marks=_marks(numbers),
        labels={"": "rank"},
        null=numbers.true_rank,
        logarithmic=True,
    )
    return Section(
        kind="true-rank",
        heading=f"Which metric finds the true rank, {true}?",
        findings=tuple(_findings(numbers)),
        tables=(table,),
        method=prose("method_true_rank.txt"),
        drawings=(figure,),
    )


def _findings(numbers: TrueRankNumbers) -> Iterator[Finding]:
    exact, true = numbers.exact, {"true_rank": numbers.true_rank}
    yield describe(
        "true_rank",
        **true,
        language_rank=round(exact["language_rank"]),
        rows=round(exact["rank_rows"]),
        contexts=round(exact["different_contexts"]),
    )
    matrices = list(rows(numbers.matrices))
    for matrix in matrices:
        if matrix.variant != LEARNED:
            ranks = {metric: getattr(matrix, metric) for metric in numbers.metrics}
            right = [name for name, rank in ranks.items() if round(rank) == numbers.true_rank]
            others = [(name, rank) for name, rank in ranks.items() if name not in right]
            name = VARIANTS[matrix.variant]
            yield describe("metrics_at_true_rank", **true, matrix=name, right=right, others=others)
    learned = [one for one in matrices if one.variant == LEARNED]
    for metric in numbers.metrics:
        ranks = {one.matrix: getattr(one, metric) for one in learned if one.trials}
        if ranks := {name: rank for name, rank in ranks.items() if rank is not None}:
            right = [name for name, rank in ranks.items() if round(rank) == numbers.true_rank]
            # A learned matrix has a single Press rank.
            title = "press_rank" if metric in PRESS_BY_EPS else metric
            yield describe("learned_ranks", **true, metric=title, ranks=ranks, right=right)
    perplexities = {name: exact[f"{name}_perplexity"] for name in ("test", "entropy", "shares")}
    models = [one for one in learned if one.test_perplexity is not None]
    nothing = sum(one.test_perplexity >= perplexities["shares"] for one in models)
    yield describe("perplexity_floor", **perplexities, nothing=nothing, models=len(models))
    if models:
        yield describe("over_floor", ratios={one.matrix: one.over_floor for one in models})


def _marks(numbers: TrueRankNumbers) -> pd.DataFrame:
    return tidy(
        {
            "name": formats.heading(metric),
            "series": one.matrix,
            "value": getattr(one, metric) or None,
            "text": formats.described(one.matrix, {metric: getattr(one, metric)}),
        }
        for metric in numbers.metrics
        for one in rows(numbers.matrices)
        if one.trials
    )
