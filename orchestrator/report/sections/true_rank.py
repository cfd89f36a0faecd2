"""The true rank of a generated language: which metric finds it, and in which matrix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from orchestrator.analysis import LEARNED, PRESS_BY_EPS, TrueRankNumbers, rows, tidy
from orchestrator.report import formats
from orchestrator.report.columns import Table
from orchestrator.report.forest import Forest
from orchestrator.report.prose import prose
from orchestrator.report.sections.section import Section
from orchestrator.words import listed

VARIANTS = {
    "float64": "the exact matrix (float64)",
    "float32": "the matrix rounded to float32",
    "noise": "the matrix with noise of float32's size",
}


def true_rank_section(numbers: TrueRankNumbers) -> Section:
    """Return the section of a TrueRank request."""
    true = numbers.true_rank
    table = Table(
        caption=f"Ranks next to the true one, {true}, and test perplexity above the floor",
        frame=numbers.matrices,
        shown=["matrix", *numbers.metrics, "test_perplexity", "over_floor"],
        file="true_rank.csv",
    )
    figure = Forest(
        name="true_rank",
        caption="Ranks by metric, of the true log-P matrix and of the learned ones; the dashed "
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


def _findings(numbers: TrueRankNumbers) -> Iterator[str]:
    exact = numbers.exact
    yield (
        f"The true log-P matrix of this language has rank {exact['language_rank']:.0f}; the rows "
        f"measured ({exact['rank_rows']:,.0f} test tokens, {exact['different_contexts']:,.0f} "
        f"different ones) have rank {numbers.true_rank}, by exact elimination, and that is what "
        "metrics can find."
    )
    matrices = list(rows(numbers.matrices))
    yield from (_found_in(one, numbers) for one in matrices if one.variant != LEARNED)
    learned = [one for one in matrices if one.variant == LEARNED]
    for metric in numbers.metrics:
        ranks = {one.matrix: getattr(one, metric) for one in learned if one.trials}
        if ranks := {name: rank for name, rank in ranks.items() if rank is not None}:
            right = [name for name, rank in ranks.items() if round(rank) == numbers.true_rank]
            # A learned matrix has a single Press rank.
            title = formats.title("press_rank" if metric in PRESS_BY_EPS else metric)
            yield (
                f"{formats.capital(title)} of what was learned: "
                f"{formats.ranked(ranks)}; the true rank, {numbers.true_rank}, in "
                f"{listed(right or ['none'])}."
            )
    yield from _above_the_floor(learned, numbers)


def _found_in(matrix: Any, numbers: TrueRankNumbers) -> str:
    ranks = {metric: getattr(matrix, metric) for metric in numbers.metrics}
    right = [metric for metric, rank in ranks.items() if round(rank) == numbers.true_rank]
    others = [
        f"{formats.title(metric)} {formats.number(rank, digits=3)}"
        for metric, rank in ranks.items()
        if metric not in right
    ]
    names = [formats.title(metric) for metric in right] or ["no metric"]
    found = f"the true rank, {numbers.true_rank}, is found by {listed(names)}"
    rest = f"; other ranks: {listed(others)}" if others else ""
    return f"Of {VARIANTS[matrix.variant]}, {found}{rest}."


def _above_the_floor(learned: list[Any], numbers: TrueRankNumbers) -> Iterator[str]:
    here, endless, shares = (
        formats.cell("test_perplexity", numbers.exact[f"{whose}_perplexity"])
        for whose in ("test", "entropy", "shares")
    )
    yield (
        f"The true distribution itself has test perplexity {here} on the test text that was read "
        f"(on endless text {endless}: no model can expect less), and a model that knows how often "
        f"each word comes, and no more, {shares}."
    )
    models = [one for one in learned if one.test_perplexity is not None]
    shares_perplexity = numbers.exact["shares_perplexity"]
    if nothing := sum(one.test_perplexity >= shares_perplexity for one in models):
        yield (
            f"{nothing} of {len(models)} models are no better than that: their ranks are those of "
            "models that have learned nothing of the language."
        )
    if models:
        above = {one.matrix: one.over_floor for one in models}
        yield f"Test perplexity in multiples of that floor: {formats.ranked(above, decimals=3)}."


def _marks(numbers: TrueRankNumbers) -> pd.DataFrame:
    return tidy(
        {
            "name": formats.capital(formats.title(metric)),
            "series": one.matrix,
            "value": getattr(one, metric) or None,
            "text": formats.described(one.matrix, {metric: getattr(one, metric)}),
        }
        for metric in numbers.metrics
        for one in rows(numbers.matrices)
        if one.trials
    )
