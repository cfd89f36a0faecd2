"""Word-similarity benchmarks by group, and how often one group beats another (Fig. 4, SM Table 3)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from orchestrator.analysis.similarity import Scores, SimilarityNumbers
from orchestrator.report import formats
from orchestrator.report.figures import COLOURS, Drawing, new_figure
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import DASH, Cell, TextTable
from orchestrator.words import counted

METHOD = (
    "Spearman's rho between people's scores and the cosines of embedding rows, over the pairs whose two lower-cased "
    "words are in the vocabulary. A benchmark with few known pairs decides little: with n pairs, two rhos that differ "
    "by less than about 2 / \N{SQUARE ROOT}n are within chance."
)


def similarity_section(numbers: SimilarityNumbers) -> Section:
    """The tables and the figure of a Similarity request."""
    scores = numbers.scores
    if not scores.benchmarks:
        return Section(kind="similarity", heading="Word similarity", findings=("No trial was measured on it yet.",))
    drawings = [("similarity_wins", "ours", scores)]
    drawings += [
        (f"similarity_wins_published_{name}", f"as published for {formats.corpus_title(name)}", found)
        for name, found in numbers.published.items()
    ]
    return Section(
        kind="similarity",
        heading="Word similarity",
        findings=tuple(_findings(numbers)),
        tables=(_rho_table(numbers), *(_wins_table(found, whose) for _, whose, found in drawings)),
        method=METHOD,
        files={
            "word_similarity.csv": list(_csv(numbers)),
            **{
                f"{name}.csv": [
                    ["model", *found.groups],
                    *([group, *row] for group, row in zip(found.groups, found.wins(), strict=True)),
                ]
                for name, _, found in drawings
            },
        },
        drawings=tuple(
            Drawing(
                name=name,
                caption=f"On how many benchmarks the row beats the column, {whose}.",
                draw=partial(_draw, found),
            )
            for name, whose, found in drawings
        ),
    )


def _findings(numbers: SimilarityNumbers) -> Iterator[str]:
    used = [numbers.pairs.get(name, 0) for name in numbers.scores.benchmarks]
    yield (
        f"100 or more pairs of words that this vocabulary knows: {sum(pairs >= 100 for pairs in used)} of "
        f"{counted(len(used), 'benchmark')}."
    )
    wins = numbers.scores.wins()
    totals = {group: sum(row) for group, row in zip(numbers.scores.groups, wins, strict=True)}
    ordered = sorted(totals, key=lambda group: -totals[group])
    compared = numbers.scores.compared()
    if compared:
        ties = compared - sum(totals.values())
        yield (
            f"Of {counted(compared, 'comparison')} of two models on a benchmark, won: "
            f"{', '.join(f'{group} {totals[group]}' for group in ordered)}{f'; ties {ties}' if ties else ''}."
        )


def _rho_table(numbers: SimilarityNumbers) -> TextTable:
    scores = numbers.scores
    printed = {
        corpus: dict(zip(found.benchmarks, found.rho, strict=True)) for corpus, found in numbers.published.items()
    }
    beside = "".join(f"; in brackets the published ones for {formats.corpus_title(name)}" for name in printed)
    body = []
    for name, row in zip(scores.benchmarks, scores.rho, strict=True):
        old = next(iter(printed.values())).get(name, (None,) * len(row)) if beside else (None,) * len(row)
        cells = [Cell(_rho(value, other), number=value) for value, other in zip(row, old, strict=True)]
        pairs = numbers.pairs.get(name, 0)
        body.append((Cell(name, kind="name"), Cell(str(pairs), number=pairs), *cells))
    return TextTable(
        caption=f"Spearman's \N{GREEK SMALL LETTER RHO} of each benchmark{beside}",
        head=("benchmark", "pairs", *scores.groups),
        body=tuple(body),
    )


def _rho(value: float | None, published: float | None) -> str:
    ours = DASH if value is None else formats.coefficient(value)
    return ours if published is None else f"{ours} ({formats.coefficient(published)})"


def _wins_table(scores: Scores, whose: str) -> TextTable:
    return TextTable(
        caption=f"On how many benchmarks the row beats the column, {whose}",
        head=("model", *scores.groups),
        body=tuple(
            (Cell(group, kind="name"), *(Cell(str(count), number=count) for count in row))
            for group, row in zip(scores.groups, scores.wins(), strict=True)
        ),
    )


def _csv(numbers: SimilarityNumbers) -> Iterator[list[object]]:
    scores = numbers.scores
    yield [
        "benchmark",
        "pairs",
        *scores.groups,
        *(f"published_{c}_{g}" for c in numbers.published for g in scores.groups),
    ]
    for name, row in zip(scores.benchmarks, scores.rho, strict=True):
        beside: list[float | None] = []
        for found in numbers.published.values():
            beside += dict(zip(found.benchmarks, found.rho, strict=True)).get(name, (None,) * len(row))
        yield [name, numbers.pairs.get(name, 0), *row, *beside]


def _draw(scores: Scores) -> Figure:
    size = len(scores.groups)
    figure, axes = new_figure(
        width_in=2.0 + 0.6 * size, height_in=1.4 + 0.45 * size, left_in=1.2, top_in=0.1, bottom_in=1.0
    )
    wins = np.array(scores.wins(), dtype=float)
    np.fill_diagonal(wins, np.nan)
    axes.imshow(np.ma.masked_invalid(wins), cmap=COLOURS, vmin=0, vmax=max(1, len(scores.benchmarks)), aspect="auto")
    for i in range(size):
        for j in range(size):
            if i != j:
                ink = "white" if wins[i, j] < len(scores.benchmarks) / 2 else "black"
                axes.text(j, i, f"{wins[i, j]:.0f}", ha="center", va="center", color=ink)
    axes.set_xticks(range(size), scores.groups, rotation=40, ha="right")
    axes.set_yticks(range(size), scores.groups)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return figure
