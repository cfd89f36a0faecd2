"""The likeliest next words of every model at the same contexts (Fig. 3 of AAAI 2021)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd

from orchestrator.analysis.tidy_frames import tidy
from search_spaces.analyses import Predictions
from trainables.corpora import UNKNOWN

PREFIX = "top_k"


def prediction_numbers(
    frame: pd.DataFrame, request: Predictions, *, corpus: str, tag: str = ""
) -> pd.DataFrame:
    """Return what each model of the done trials expects at each context, then what a paper prints
    at the same contexts; `tag` is that of the user's own contexts, at which nothing is printed.

    A row for each context and model: source (the table that prints it; empty for trials), context,
    model and, None if the model has no prediction there:

    - next (the word that follows), next_in_text (the same in the text, if the contexts say so),
      next_shown ("banknote (as <unk>)" if the vocabulary lacks the word), ends_in (the last words
      of the context).
    - probability, rank: what the model gives the word, and its place among all words, 1 for the
      likeliest; both None if a paper prints only likelier words.
    - top: the likeliest words with their probabilities.
    - hit: whether the word is among these; None if the vocabulary lacks it, since to expect some
      unknown word is no prediction of it.
    """
    prefix = f"{PREFIX}-{tag} " if tag else f"{PREFIX} "
    done = frame[frame["state"] == "done"]
    told = [name for name in done.columns if name.startswith(prefix) and done[name].notna().any()]
    # One model a trial: if several seeds repeat a group, the trials' names tell them apart.
    models = done["group" if done["group"].is_unique else "name"]
    records = [
        {"source": "", "context": name.partition(" ")[2], "model": model}
        | _prediction(json.loads(value) if isinstance(value, str) else None)
        for name in sorted(told, key=_place)
        for model, value in zip(models, done[name], strict=True)
    ]
    published = {} if tag else request.published.get(corpus, {})
    endings: dict[str, str] = {}
    for record in records:
        endings[record["context"]] = endings.get(record["context"]) or record.get("ends_in", "")
    records += [
        {"source": request.source, "context": context, "model": model}
        | _prediction(predictions.get(context), ends_in)
        for context, ends_in in endings.items()
        for model, predictions in published.items()
    ]
    return tidy(records)


def _prediction(told: Mapping[str, Any] | None, ends_in: str = "") -> dict[str, Any]:
    if told is None:
        return {}
    word, in_text, rank, top = told["next"], told.get("next_in_text"), told["rank"], told["top"]
    return {
        "next": word,
        "next_in_text": in_text,
        "next_shown": f"{in_text} (as {word})" if in_text not in (None, "", word) else word,
        "ends_in": told.get("context", ends_in),
        "probability": told["probability"],
        "rank": rank,
        "top": top,
        "hit": None if word == UNKNOWN else rank is not None and rank <= len(top),
    }


def _place(column: str) -> tuple[str, int]:
    """By group in alphabetical order, then by number."""
    group, _, number = column.rpartition(" ")
    return group, int(number)
