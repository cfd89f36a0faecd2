"""Word-similarity benchmarks by group, and how often one group beats another (Fig. 4, SM Table
3)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from orchestrator.analysis import SimilarityNumbers, comparisons, wins
from orchestrator.report import formats
from orchestrator.report.figures import Drawing, draw_cells, new_figure
from orchestrator.report.prose import prose
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import Cell, TextTable, csv_lines, headed_table
from orchestrator.words import counted


def similarity_section(numbers: SimilarityNumbers) -> Section:
    """The tables and the figure of a Similarity request."""
    if numbers.rho.empty:
        return Section(
            kind="similarity",
            heading="Word similarity",
            findings=("No trial was measured on it yet.",),
        )
    files = {"word_similarity.csv": csv_lines(list(_records(numbers)))}
    tables, drawings = [_rho_table(numbers)], []
    published = {numbers.corpus: numbers.printed} if numbers.corpus else {}
    for corpus, rho in {"": numbers.rho, **published}.items():
        whose = f"as published for {formats.corpus_title(corpus)}" if corpus else "ours"
        name = f"similarity_wins_published_{corpus}" if corpus else "similarity_wins"
        caption = f"On how many benchmarks the row beats the column, {whose}"
        head, rows = ["model", *map(str, rho.columns)], list(map(list, wins(rho).itertuples()))
        tables.append(headed_table(caption, head, rows))
        files[f"{name}.csv"] = [head, *rows]
        drawings.append(Drawing(name=name, caption=f"{caption}.", draw=partial(_draw, rho)))
    return Section(
        kind="similarity",
        heading="Word similarity",
        findings=tuple(_findings(numbers)),
        tables=tuple(tables),
        method=prose("method_similarity.txt"),
        files=files,
        drawings=tuple(drawings),
    )


def _findings(numbers: SimilarityNumbers) -> Iterator[str]:
    used = [numbers.pairs.get(name, 0) for name in numbers.rho.index]
    yield (
        f"100 or more pairs of words that this vocabulary knows: "
        f"{sum(pairs >= 100 for pairs in used)} of "
        f"{counted(len(used), 'benchmark')}."
    )
    if compared := comparisons(numbers.rho):
        totals = wins(numbers.rho).sum(axis="columns")
        won = ", ".join(
            f"{group} {totals[group]}"
            for group in sorted(totals.index, key=lambda group: -totals[group])
        )
        ties = compared - totals.sum()
        yield f"Of {counted(compared, 'comparison')} of two models on a benchmark, won: {won}; ties {ties}."


def _rho_table(numbers: SimilarityNumbers) -> TextTable:
    corpus = formats.corpus_title(numbers.corpus)
    beside = f"; in brackets the published ones for {corpus}" if corpus else ""
    rows = []
    for name in numbers.rho.index:
        ours, printed = _row(numbers.rho, name), _row(numbers.printed, name)
        cells = [Cell(_rho(value, printed[group]), value) for group, value in ours.items()]
        rows.append([name, numbers.pairs.get(name, 0), *cells])
    caption = f"Spearman's \N{GREEK SMALL LETTER RHO} of each benchmark{beside}"
    return headed_table(caption, ["benchmark", "pairs", *map(str, numbers.rho.columns)], rows)


def _row(rho: pd.DataFrame, benchmark: str) -> dict[str, float | None]:
    """Each group's value; None for what there is none of."""
    values = rho.reindex([benchmark]).to_dict("records")[0]
    return {str(group): None if pd.isna(value) else value for group, value in values.items()}


def _rho(value: float | None, published: float | None) -> str:
    beside = "" if published is None else f" ({formats.coefficient(published)})"
    return formats.coefficient(value) + beside


def _records(numbers: SimilarityNumbers) -> Iterator[dict[str, object]]:
    for name in numbers.rho.index:
        printed = _row(numbers.printed, name)
        for group, rho in _row(numbers.rho, name).items():
            record = {
                "benchmark": name,
                "pairs": numbers.pairs.get(name, 0),
                "group": group,
                "rho": rho,
            }
            yield record | (
                {f"published_{numbers.corpus}": printed[group]} if numbers.corpus else {}
            )


def _draw(rho: pd.DataFrame) -> Figure:
    size, groups = len(rho.columns), list(map(str, rho.columns))
    figure, axes = new_figure(
        width_in=2.0 + 0.6 * size,
        height_in=1.4 + 0.45 * size,
        left_in=1.2,
        top_in=0.1,
        bottom_in=1.0,
    )
    won = np.array(wins(rho), dtype=float)
    np.fill_diagonal(won, np.nan)
    texts = [["" if np.isnan(value) else f"{value:.0f}" for value in row] for row in won]
    draw_cells(
        axes, won, texts, columns=groups, rows=groups, limits=(0, max(1, len(rho))), rotation=40
    )
    axes.invert_yaxis()
    return figure
