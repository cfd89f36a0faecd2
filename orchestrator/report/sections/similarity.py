"""Word-similarity benchmarks by group, and wins between groups (Fig. 4, SM Table 3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from orchestrator.analysis import SimilarityNumbers, comparisons, rho_matrix, tidy, wins
from orchestrator.report import formats
from orchestrator.report.columns import Table, pivot, whole_table
from orchestrator.report.findings import Finding, describe
from orchestrator.report.heat_map import HeatMap
from orchestrator.report.prose import prose
from orchestrator.report.sections.section import NOTHING, Section
from orchestrator.report.tables import Cell

FEWEST_PAIRS = 100


def similarity_section(numbers: SimilarityNumbers) -> Section:
    """Return the section of a Similarity request."""
    if numbers.values.empty:
        return NOTHING
    tables, drawings = list(_tables(numbers)), []
    for source in ("rho", "published") if numbers.corpus else ("rho",):
        is_printed = source == "published"
        whose = f"as published for {formats.corpus_title(numbers.corpus)}" if is_printed else "ours"
        name = f"similarity_wins_published_{numbers.corpus}" if is_printed else "similarity_wins"
        caption = f"Number of benchmarks on which the row's model beats the column's, {whose}"
        rho = rho_matrix(numbers.values, source)
        won = wins(rho).astype(object)
        frame = won.rename_axis("model").reset_index(allow_duplicates=True)
        tables.append(whole_table(frame, caption, f"{name}.csv"))
        drawings.append(
            HeatMap(
                name=name,
                caption=f"{caption}.",
                cells=_cells(won),
                limits=(0, max(1, len(rho))),
                tilted=True,
            )
        )
    return Section(
        kind="similarity",
        heading="Word similarity",
        findings=tuple(_findings(numbers.values)),
        tables=tuple(tables),
        method=prose("method_similarity.txt"),
        drawings=tuple(drawings),
    )


def _findings(values: pd.DataFrame) -> Iterator[Finding]:
    rho = rho_matrix(values, "rho")
    if compared := comparisons(rho):
        totals = wins(rho).sum(axis="columns").sort_values(ascending=False, kind="stable")
        yield describe(
            "wins", comparisons=compared, wins=list(totals.items()), ties=compared - totals.sum()
        )
    pairs = values.drop_duplicates("benchmark")["pairs"]
    yield describe(
        "known_pairs", fewest=FEWEST_PAIRS, large=sum(pairs >= FEWEST_PAIRS), benchmarks=len(pairs)
    )


def _tables(numbers: SimilarityNumbers) -> Iterator[Table]:
    corpus = formats.corpus_title(numbers.corpus)
    printed = f"; in brackets, published values for {corpus}" if corpus else ""
    frame, across = pivot(
        numbers.values,
        index=["benchmark", "pairs"],
        across="group",
        cell=_rho,
        headings={group: str(group) for group in numbers.values["group"]},
    )
    yield Table(
        caption=f"Spearman's \N{GREEK SMALL LETTER RHO} of each benchmark{printed}",
        frame=frame,
        columns=["benchmark", "pairs", *across],
    )
    without = [] if numbers.corpus else ["published"]
    yield Table(
        frame=numbers.values.drop(columns=without),
        file="word_similarity.csv",
        names={"published": f"published_{numbers.corpus}"},
    )


def _rho(row: Any) -> Cell:
    printed = "" if row.published is None else f" ({formats.coefficient(row.published)})"
    return Cell(formats.coefficient(row.rho) + printed, row.rho)


def _cells(won: pd.DataFrame) -> pd.DataFrame:
    return tidy(
        {
            "row": str(group),
            "column": str(other),
            "value": None if group == other else count,
            "text": "" if group == other else f"{count:.0f}",
        }
        for group, of_group in won.to_dict("index").items()
        for other, count in of_group.items()
    )
