"""Which model has the true next word among its likeliest, and what they expect instead (Fig. 3, SM Table 2)."""

from __future__ import annotations

import math
from collections.abc import Iterator

from matplotlib.figure import Figure

from orchestrator.analysis import Prediction, PredictionNumbers
from orchestrator.report.figures import Drawing, draw_cells, new_figure
from orchestrator.report.formats import DASH
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import Cell, TextTable, csv_lines, headed_table, text_table
from orchestrator.words import counted

LIGHTEST = 1.3
"""Of the colours' scale, on which a hit is 1 and a miss 0: the lightest of them glare."""


def prediction_section(numbers: PredictionNumbers) -> Section:
    """The table and the figure of a Predictions request."""
    if not numbers.contexts or not numbers.models:
        return Section(kind="predictions", heading="Predictions", findings=("No trial has predictions yet.",))
    return Section(
        kind="predictions",
        heading="The likeliest next words",
        findings=tuple(_findings(numbers)),
        tables=(_hits_table(numbers), _words_table(numbers)),
        method=(
            "A context is the test text up to a word, the hidden state carried from the start. Contexts that were "
            "chosen by hand are no sample of the text: hits on them describe these contexts and test nothing."
        ),
        files={"predictions.csv": csv_lines(list(_records(numbers)))},
        drawings=(
            Drawing(
                name="predictions",
                caption="Light: the true next word is among the five likeliest, with its place; dark: it is not; "
                "hatched: the vocabulary lacks it.",
                draw=lambda: _draw(numbers),
            ),
        ),
    )


def _findings(numbers: PredictionNumbers) -> Iterator[str]:
    hits = (f"{model} at {' of '.join(map(str, numbers.hits(j)))}" for j, model in enumerate(numbers.models))
    yield f"The true next word is among the five likeliest: {', '.join(hits)}."
    contexts = counted(len(numbers.contexts), "context")
    if numbers.not_askable:
        yield f"At {numbers.not_askable} of {contexts} the vocabulary lacks that word: they count for no model."
    rows = [[cell.hit for cell in row if cell and cell.askable] for row in numbers.cells]
    everyone, no_one = sum(all(row) for row in rows if row), sum(not any(row) for row in rows if row)
    yield f"All models have it at {everyone} of {contexts}, none at {no_one}."


def _hits_table(numbers: PredictionNumbers) -> TextTable:
    rows = []
    for j, model in enumerate(numbers.models):
        hits, contexts = numbers.hits(j)
        rows.append({"model": model, "hits": hits, "contexts": Cell(str(contexts))})
    return text_table("Contexts with the true next word among the five likeliest", rows)


def _words_table(numbers: PredictionNumbers) -> TextTable:
    rows = []
    for context, first, row in zip(numbers.contexts, numbers.first, numbers.cells, strict=True):
        word = first.next_shown if first else ""
        expected = (Cell(_expected(cell), kind="name") for cell in row)
        rows.append([context, word, *expected])
    head = ["context", "next word", *numbers.models]
    return headed_table("The five likeliest words, and the place of the true one", head, rows)


def _expected(cell: Prediction | None) -> str:
    if cell is None:
        return DASH
    place = f"({cell.rank})" if cell.askable else ""
    return f"{' '.join(word for word, _ in cell.top)} {place}".rstrip()


def _records(numbers: PredictionNumbers) -> Iterator[dict[str, object]]:
    for context, row in zip(numbers.contexts, numbers.cells, strict=True):
        for model, cell in zip(numbers.models, row, strict=True):
            if cell is not None:
                yield {
                    "context": context,
                    "next_word": cell.next,
                    "next_word_in_text": cell.next_in_text,
                    "model": model,
                    "rank": cell.rank,
                    "probability": cell.probability,
                    "likeliest": " ".join(word for word, _ in cell.top),
                    "their_probabilities": " ".join(str(share) for _, share in cell.top),
                }


def _draw(numbers: PredictionNumbers) -> Figure:
    rows, columns = len(numbers.models), len(numbers.contexts)
    figure, axes = new_figure(
        width_in=1.9 + 0.36 * columns, height_in=1.5 + 0.36 * rows, left_in=1.5, top_in=0.1, bottom_in=1.2
    )
    by_model = list(zip(*numbers.cells, strict=True))
    draw_cells(
        axes,
        [[float(cell.hit) if cell and cell.askable else math.nan for cell in row] for row in by_model],
        [[str(cell.rank) if cell and cell.hit else "" for cell in row] for row in by_model],
        columns=numbers.contexts,
        rows=numbers.models,
        limits=(0, LIGHTEST),
        rotation=90,
    )
    axes.invert_yaxis()
    return figure
