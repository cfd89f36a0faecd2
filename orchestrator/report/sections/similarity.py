"""Word-similarity benchmarks by group, and how often one group beats another (Fig. 4, SM Table 3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from orchestrator.analysis import Scores, SimilarityNumbers
from orchestrator.report import formats
from orchestrator.report.figures import COLOURS, Drawing, new_figure
from orchestrator.report.prose import prose
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import DASH, Cell, TextTable, csv_lines, text_table
from orchestrator.words import counted


def similarity_section(numbers: SimilarityNumbers) -> Section:
    """The tables and the figure of a Similarity request."""
    scores = numbers.scores
    if not scores.benchmarks:
        return Section(kind="similarity", heading="Word similarity", findings=("No trial was measured on it yet.",))
    winners = [("similarity_wins", "ours", scores)]
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
            *(text_table(f"{caption}, {whose}", *_wins(groups)) for _, whose, groups in winners),
        ),
        method=prose("method_similarity.txt"),
        files={
            "word_similarity.csv": csv_lines(list(_records(numbers))),
            **{f"{name}.csv": [_wins(groups)[0], *_wins(groups)[1]] for name, _, groups in winners},
        },
        drawings=tuple(
            Drawing(name=name, caption=f"{caption}, {whose}.", draw=partial(_draw, groups))
            for name, whose, groups in winners
        ),
    )


def _wins(scores: Scores) -> tuple[list[str], list[list[object]]]:
    """A heading and a row a group."""
    rows = [[group, *row] for group, row in zip(scores.groups, scores.wins(), strict=True)]
    return ["model", *scores.groups], rows


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
    beside = "".join(f"; in brackets the published ones for {formats.corpus_title(name)}" for name in numbers.published)
    rows = []
    for name, row in zip(scores.benchmarks, scores.rho, strict=True):
        printed = next((_printed(scores, name) for scores in numbers.published.values()), [None] * len(row))
        cells = (Cell(_rho(value, beside), value) for value, beside in zip(row, printed, strict=True))
        rows.append((name, numbers.pairs.get(name, 0), *cells))
    caption = f"Spearman's \N{GREEK SMALL LETTER RHO} of each benchmark{beside}"
    return text_table(caption, ("benchmark", "pairs", *scores.groups), rows)


def _printed(scores: Scores, benchmark: str) -> Sequence[float | None]:
    """What was printed of each group; None for what was not."""
    printed = dict(zip(scores.benchmarks, scores.rho, strict=True))
    return printed.get(benchmark, (None,) * len(scores.groups))


def _rho(value: float | None, published: float | None) -> str:
    ours = DASH if value is None else formats.coefficient(value)
    return ours if published is None else f"{ours} ({formats.coefficient(published)})"


def _records(numbers: SimilarityNumbers) -> Iterator[dict[str, object]]:
    groups = numbers.scores.groups
    for name, row in zip(numbers.scores.benchmarks, numbers.scores.rho, strict=True):
        record: dict[str, object] = {"benchmark": name, "pairs": numbers.pairs.get(name, 0)}
        record |= zip(groups, row, strict=True)
        for corpus, scores in numbers.published.items():
            record |= zip((f"published_{corpus}_{group}" for group in groups), _printed(scores, name), strict=True)
        yield record


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
