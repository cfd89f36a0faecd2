"""Word-similarity benchmarks by group, and how often one group beats another (Fig. 4, SM Table 3)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from orchestrator.analysis import SimilarityNumbers, comparisons, wins
from orchestrator.report import formats
from orchestrator.report.figures import COLOURS, Drawing, new_figure
from orchestrator.report.prose import prose
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import DASH, Cell, TextTable, csv_lines, text_table
from orchestrator.words import counted


def similarity_section(numbers: SimilarityNumbers) -> Section:
    """The tables and the figure of a Similarity request."""
    if numbers.rho.empty:
        return Section(kind="similarity", heading="Word similarity", findings=("No trial was measured on it yet.",))
    winners = [("similarity_wins", "ours", numbers.rho)]
    winners += [
        (f"similarity_wins_published_{name}", f"as published for {formats.corpus_title(name)}", printed)
        for name, printed in numbers.published.items()
    ]
    caption = "On how many benchmarks the row beats the column"
    return Section(
        kind="similarity",
        heading="Word similarity",
        findings=tuple(_findings(numbers)),
        tables=(
            _rho_table(numbers),
            *(text_table(f"{caption}, {whose}", *_wins(rho)) for _, whose, rho in winners),
        ),
        method=prose("method_similarity.txt"),
        files={
            "word_similarity.csv": csv_lines(list(_records(numbers))),
            **{f"{name}.csv": [_wins(rho)[0], *_wins(rho)[1]] for name, _, rho in winners},
        },
        drawings=tuple(
            Drawing(name=name, caption=f"{caption}, {whose}.", draw=partial(_draw, rho)) for name, whose, rho in winners
        ),
    )


def _wins(rho: pd.DataFrame) -> tuple[list[str], list[list[object]]]:
    """A heading and a row a group."""
    return ["model", *rho], [list(row) for row in wins(rho).itertuples()]


def _findings(numbers: SimilarityNumbers) -> Iterator[str]:
    used = [numbers.pairs.get(name, 0) for name in numbers.rho.index]
    yield (
        f"100 or more pairs of words that this vocabulary knows: {sum(pairs >= 100 for pairs in used)} of "
        f"{counted(len(used), 'benchmark')}."
    )
    totals = wins(numbers.rho).sum(axis="columns")
    ordered = sorted(totals.index, key=lambda group: -totals[group])
    compared = comparisons(numbers.rho)
    if compared:
        ties = compared - totals.sum()
        yield (
            f"Of {counted(compared, 'comparison')} of two models on a benchmark, won: "
            f"{', '.join(f'{group} {totals[group]}' for group in ordered)}{f'; ties {ties}' if ties else ''}."
        )


def _rho_table(numbers: SimilarityNumbers) -> TextTable:
    beside = "".join(f"; in brackets the published ones for {formats.corpus_title(name)}" for name in numbers.published)
    rows = []
    for name in numbers.rho.index:
        ours = _row(numbers.rho, name)
        printed = next((_row(rho, name) for rho in numbers.published.values()), dict.fromkeys(ours))
        cells = (Cell(_rho(value, printed[group]), value) for group, value in ours.items())
        rows.append((name, numbers.pairs.get(name, 0), *cells))
    caption = f"Spearman's \N{GREEK SMALL LETTER RHO} of each benchmark{beside}"
    return text_table(caption, ("benchmark", "pairs", *numbers.rho), rows)


def _row(rho: pd.DataFrame, benchmark: str) -> dict[str, float | None]:
    """Each group's value; None for what there is none of."""
    values = rho.reindex([benchmark]).to_dict("records")[0]
    return {str(group): None if pd.isna(value) else value for group, value in values.items()}


def _rho(value: float | None, published: float | None) -> str:
    ours = DASH if value is None else formats.coefficient(value)
    return ours if published is None else f"{ours} ({formats.coefficient(published)})"


def _records(numbers: SimilarityNumbers) -> Iterator[dict[str, object]]:
    for name in numbers.rho.index:
        record: dict[str, object] = {"benchmark": name, "pairs": numbers.pairs.get(name, 0)}
        record |= _row(numbers.rho, name)
        for corpus, rho in numbers.published.items():
            record |= {f"published_{corpus}_{group}": value for group, value in _row(rho, name).items()}
        yield record


def _draw(rho: pd.DataFrame) -> Figure:
    size = len(rho.columns)
    figure, axes = new_figure(
        width_in=2.0 + 0.6 * size, height_in=1.4 + 0.45 * size, left_in=1.2, top_in=0.1, bottom_in=1.0
    )
    won = np.array(wins(rho), dtype=float)
    np.fill_diagonal(won, np.nan)
    axes.imshow(np.ma.masked_invalid(won), cmap=COLOURS, vmin=0, vmax=max(1, len(rho)), aspect="auto")
    for i in range(size):
        for j in range(size):
            if i != j:
                ink = "white" if won[i, j] < len(rho) / 2 else "black"
                axes.text(j, i, f"{won[i, j]:.0f}", ha="center", va="center", color=ink)
    axes.set_xticks(range(size), rho.columns, rotation=40, ha="right")
    axes.set_yticks(range(size), rho.columns)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return figure
