"""Models' likeliest next words, and whether the true one is among them (Fig. 3, SM Table 2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from orchestrator.analysis import rows, tidy
from orchestrator.report import formats
from orchestrator.report.columns import Table, whole_table
from orchestrator.report.findings import Finding, describe
from orchestrator.report.formats import DASH
from orchestrator.report.heat_map import HeatMap
from orchestrator.report.sections.section import Section
from trainables.corpora import UNKNOWN

LIGHTEST = 1.3
"""Value of the lightest colour. A hit has value 1, and so a colour that is not too bright."""
CELL_IN, WORD_LETTERS, CONTEXT_LETTERS = 0.95, 9, 30


def prediction_section(numbers: pd.DataFrame) -> Section:
    """Return the section of a Predictions request."""
    sources = {str(source): cells for source, cells in numbers.groupby("source", sort=False)}
    return Section(
        kind="predictions",
        heading="The likeliest next words",
        findings=tuple(finding for side in sources.items() for finding in _findings(*side)),
        tables=(_hits_table(numbers), _words_table(numbers), _record(numbers)),
        method=(
            "A context is the test text from its start up to a word. The hidden state is carried "
            "through it. Contexts chosen by hand are not a random sample of the text: hits "
            "describe these contexts and test nothing."
        ),
        drawings=tuple(
            HeatMap(
                name="predictions_printed" if source else "predictions",
                caption=f"{source or 'This run'}: each model's likeliest next word at each "
                "context. Rows have the context's last words and the true next word. Green: the "
                "true word is among the five likeliest (rank in brackets). Blue: it is not. "
                "Hatched: it is not in the vocabulary, or there is no prediction.",
                cells=tidy(_cells(cells)),
                limits=(0, LIGHTEST),
                cell_in=(CELL_IN, 0.3),
            )
            for source, cells in sources.items()
        ),
    )


def _findings(source: str, cells: pd.DataFrame) -> Iterator[Finding]:
    hits = [
        {"model": model, "hits": sum(hit.dropna()), "contexts": hit.count()}
        for model, hit in cells.groupby("model", sort=False)["hit"]
    ]
    yield describe("predictions", source=source, hits=hits)
    by_context = cells.groupby("context", sort=False)
    contexts = {"contexts": by_context.ngroups, "source": source}
    if unknown := sum(_first(at).next == UNKNOWN for _, at in by_context):
        yield describe("unknown_words", **contexts, unknown=unknown)
    hit = cells.dropna(subset=["hit"]).astype({"hit": bool}).groupby("context")["hit"]
    yield describe("common_predictions", **contexts, all=hit.all().sum(), none=(~hit.any()).sum())


def _first(cells: pd.DataFrame) -> Any:
    return next(rows(cells.sort_values("next", key=pd.isna, kind="stable")))


def _hits(hit: pd.Series[Any]) -> str:
    return f"{sum(hit.dropna())} of {hit.count()}"


def _hits_table(numbers: pd.DataFrame) -> Table:
    hits = numbers.groupby(["model", "source"], sort=False)["hit"].agg(_hits).unstack(sort=False)
    frame = hits.fillna(DASH).rename(columns={"": "hits"}).reset_index()
    return whole_table(frame, "Contexts with the true next word among the five likeliest")


def _words_table(numbers: pd.DataFrame) -> Table:
    records = []
    for context, at in numbers.groupby("context", sort=False):
        for _, cells in at.groupby("source", sort=False):
            first = _first(cells)
            records.append(
                {
                    "context": f"{context}, {first.source}" if first.source else context,
                    "ends in": first.ends_in or "",
                    "next word": first.next_shown or "",
                    **{f"of {cell.model}": _expected(cell) for cell in rows(cells)},
                }
            )
    frame = tidy(records).fillna(DASH)
    if not any(frame["ends in"]):
        del frame["ends in"]
    return whole_table(
        frame.rename(columns=lambda name: name.removeprefix("of ")),
        "The five likeliest words with their probabilities, and the rank of the true word",
    )


def _expected(cell: Any) -> str:
    if cell.top is None:
        return DASH
    rank = f"({cell.rank})" if cell.hit is not None and cell.rank else ""
    return f"{' '.join(f'{word} {share:.2f}' for word, share in cell.top)} {rank}".rstrip()


def _record(numbers: pd.DataFrame) -> Table:
    records = (
        {
            "context": cell.context,
            "next_word": cell.next,
            "next_word_in_text": cell.next_in_text,
            "model": cell.model,
            "printed_in": cell.source,
            "rank": cell.rank,
            "probability": cell.probability,
            "likeliest": " ".join(word for word, _ in cell.top),
            "their_probabilities": " ".join(str(share) for _, share in cell.top),
            "ends_in": cell.ends_in,
        }
        for cell in rows(numbers.dropna(subset=["next"]))
    )
    return Table(frame=tidy(records), file="predictions.csv")


def _cells(predictions: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for context, at in predictions.groupby("context", sort=False):
        row = _row_name(str(context), _first(at))
        for cell in rows(at):
            yield {
                "row": row,
                "column": cell.model.replace(" ", "\n"),
                "value": None if cell.hit is None else float(cell.hit),
                "text": "" if cell.top is None else _likeliest(cell),
                "name": _name(cell),
            }


def _row_name(context: str, first: Any) -> str:
    if first.next is None:
        return context
    end = (
        first.ends_in
        if len(first.ends_in) <= CONTEXT_LETTERS
        else first.ends_in[-CONTEXT_LETTERS:].partition(" ")[2]
    )
    words = f"\N{HORIZONTAL ELLIPSIS} {end} " if end else ""
    return f"{context}: {words}\N{RIGHTWARDS ARROW} {_cut(first.next_shown, CONTEXT_LETTERS)}"


def _likeliest(cell: Any) -> str:
    word = _cut(cell.top[0][0], WORD_LETTERS) if cell.top else DASH
    return f"{word} ({cell.rank})" if cell.hit else word


def _cut(word: str, letters: int) -> str:
    return word if len(word) <= letters else f"{word[: letters - 1]}\N{HORIZONTAL ELLIPSIS}"


def _name(cell: Any) -> str:
    if cell.top is None:
        return f"{cell.model}: {DASH}"
    true = f"{cell.next_shown}: rank {cell.rank or DASH}, {formats.percent(cell.probability)}"
    words = (f"{word} {formats.percent(share)}" for word, share in cell.top)
    return "\n".join(
        [
            cell.model,
            f"\N{HORIZONTAL ELLIPSIS} {cell.ends_in}",
            f"followed by {true}",
            "expects:",
            *words,
        ]
    )
