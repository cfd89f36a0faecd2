"""Which model has the true next word among its likeliest, and what they expect instead (Fig. 3, SM
Table 2)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import pandas as pd

from orchestrator.analysis import Prediction, PredictionNumbers, tidy
from orchestrator.report import formats
from orchestrator.report.columns import Column, Table
from orchestrator.report.formats import DASH
from orchestrator.report.heat_map import HeatMap
from orchestrator.report.sections.section import Section
from orchestrator.words import counted

LIGHTEST = 1.3
"""Of the colours' scale, on which a hit is 1 and a miss 0: the lightest of them glare."""
CELL_IN, WORD_LETTERS, CONTEXT_LETTERS = 0.95, 9, 30


def prediction_section(numbers: PredictionNumbers) -> Section:
    """The table and the figure of a Predictions request."""
    if not numbers.contexts or not numbers.models:
        return Section(
            kind="predictions", heading="Predictions", findings=("No trial has predictions yet.",)
        )
    return Section(
        kind="predictions",
        heading="The likeliest next words",
        findings=tuple(finding for side in numbers.sides for finding in _findings(side)),
        tables=(
            _hits_table(numbers),
            _words_table(numbers),
            Table(frame=tidy(chain(*map(_records, numbers.sides))), file="predictions.csv"),
        ),
        method=(
            "A context is the test text up to a word, the hidden state carried from the start. "
            "Contexts that were "
            "chosen by hand are no sample of the text: hits on them describe these contexts and "
            "test nothing."
        ),
        drawings=tuple(
            HeatMap(
                name="predictions_printed" if side.source else "predictions",
                caption=f"{side.source or 'This run'}: at each context, with its last words and "
                "the true next one, the word that a model finds likeliest. Green, with its place "
                "in brackets: the true one is among the five likeliest; blue: it is not; hatched: "
                "it is not in the vocabulary, or there is no prediction.",
                cells=_cells(side),
                limits=(0, LIGHTEST),
                cell_in=(CELL_IN, 0.3),
            )
            for side in numbers.sides
        ),
    )


def _findings(numbers: PredictionNumbers) -> Iterator[str]:
    hits = (f"{model} at {_hits(numbers, j)}" for j, model in enumerate(numbers.models))
    where = f" in {numbers.source}" if numbers.source else ""
    yield f"The true next word is among the five likeliest{where}: {', '.join(hits)}."
    contexts = counted(len(numbers.contexts), "context")
    if numbers.not_askable:
        yield (
            f"At {numbers.not_askable} of {contexts} the vocabulary lacks that word: they count "
            "for no model."
        )
    rows = [[cell.hit for cell in row if cell and cell.askable] for row in numbers.cells]
    everyone, no_one = (
        sum(all(row) for row in rows if row),
        sum(not any(row) for row in rows if row),
    )
    yield f"All models have it at {everyone} of {contexts}{where}, none at {no_one}."


def _hits_table(numbers: PredictionNumbers) -> Table:
    sources = {side.source or "hits": side for side in numbers.sides}
    hits = (
        {"model": model}
        | {
            source: _hits(side, side.models.index(model)) if model in side.models else DASH
            for source, side in sources.items()
        }
        for model in numbers.all_models
    )
    return Table(
        caption="Contexts with the true next word among the five likeliest",
        frame=tidy(hits),
        shown=["model", *((source, Column(source, str)) for source in sources)],
    )


def _hits(numbers: PredictionNumbers, j: int) -> str:
    return " of ".join(map(str, numbers.hits(j)))


def _words_table(numbers: PredictionNumbers) -> Table:
    records = []
    for i, context in enumerate(numbers.contexts):
        for side in numbers.sides:
            first, cells = side.first[i], dict(zip(side.models, side.cells[i], strict=True))
            records.append(
                {
                    "context": f"{context}, {side.source}" if side.source else context,
                    "ends in": first.context if first else "",
                    "next word": first.next_shown if first else "",
                    **{f"of {model}": _expected(cells.get(model)) for model in numbers.all_models},
                }
            )
    with_ends = ["ends in"] * any(record["ends in"] for record in records)
    models = [(f"of {model}", Column(model, str)) for model in numbers.all_models]
    return Table(
        caption="The five likeliest words with their probabilities, and the place of the true one",
        frame=tidy(records),
        shown=[
            *((name, Column(name, str)) for name in ("context", *with_ends, "next word")),
            *models,
        ],
    )


def _expected(cell: Prediction | None) -> str:
    if cell is None:
        return DASH
    place = f"({cell.rank})" if cell.askable and cell.rank else ""
    return f"{' '.join(f'{word} {share:.2f}' for word, share in cell.top)} {place}".rstrip()


def _records(numbers: PredictionNumbers) -> Iterator[dict[str, object]]:
    for context, row in zip(numbers.contexts, numbers.cells, strict=True):
        for model, cell in zip(numbers.models, row, strict=True):
            if cell is not None:
                yield {
                    "context": context,
                    "next_word": cell.next,
                    "next_word_in_text": cell.next_in_text,
                    "model": model,
                    "printed_in": numbers.source,
                    "rank": cell.rank,
                    "probability": cell.probability,
                    "likeliest": " ".join(word for word, _ in cell.top),
                    "their_probabilities": " ".join(str(share) for _, share in cell.top),
                    "ends_in": cell.context,
                }


def _cells(numbers: PredictionNumbers) -> pd.DataFrame:
    """Return a row a context, a column a model."""
    return tidy(
        {
            "row": _row_name(context, first),
            "column": model.replace(" ", "\n"),
            "value": float(cell.hit) if cell and cell.askable else None,
            "text": _likeliest(cell) if cell else "",
            "name": _name(model, cell),
            "trial_id": trial_id,
        }
        for context, first, row in zip(numbers.contexts, numbers.first, numbers.cells, strict=True)
        for model, trial_id, cell in zip(numbers.models, numbers.trial_ids, row, strict=True)
    )


def _row_name(context: str, first: Prediction | None) -> str:
    if first is None:
        return context
    end = (
        first.context
        if len(first.context) <= CONTEXT_LETTERS
        else first.context[-CONTEXT_LETTERS:].partition(" ")[2]
    )
    words = f"\N{HORIZONTAL ELLIPSIS} {end} " if end else ""
    return f"{context}: {words}\N{RIGHTWARDS ARROW} {_cut(first.next_shown, CONTEXT_LETTERS)}"


def _likeliest(cell: Prediction) -> str:
    """With the place of the true word where that is among them."""
    shown = _cut(cell.top[0][0], WORD_LETTERS) if cell.top else DASH
    return f"{shown} ({cell.rank})" if cell.hit else shown


def _cut(word: str, letters: int) -> str:
    return word if len(word) <= letters else f"{word[: letters - 1]}\N{HORIZONTAL ELLIPSIS}"


def _name(model: str, cell: Prediction | None) -> str:
    if cell is None:
        return f"{model}: {DASH}"
    true = f"{cell.next_shown}: place {cell.rank or DASH}, {formats.percent(cell.probability)}"
    words = (f"{word} {formats.percent(share)}" for word, share in cell.top)
    return "\n".join(
        [
            model,
            f"\N{HORIZONTAL ELLIPSIS} {cell.context}",
            f"followed by {true}",
            "expects:",
            *words,
        ]
    )
