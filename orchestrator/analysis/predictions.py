"""Likeliest next words of every model at the same contexts (Fig. 3 of AAAI 2021)."""

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
    """Return the predictions of the done trials' models by context, then the printed ones.

    `tag` is that of the user's own contexts, which have no printed predictions. Columns: source
    (printed table; empty for trials), context, model and, None without a prediction:

    - next (the following word), next_in_text (in the text, if the contexts give it), next_shown
      ("banknote (as <unk>)" outside the vocabulary), ends_in (last words of the context).
    - probability, rank: of that word, 1 for the likeliest; None if a paper prints only likelier
      words.
    - top: likeliest words with probabilities.
    - hit: `top` has the word; None for <unk>, which is not a prediction of this word.
    """
    prefix = f"{PREFIX}-{tag} " if tag else f"{PREFIX} "
    trials = frame[frame["state"] == "done"]
    columns = [
        name for name in trials.columns if name.startswith(prefix) and trials[name].notna().any()
    ]
    # One model per trial: the names distinguish seeds of a group.
    models = trials["group" if trials["group"].is_unique else "name"]
    records = [
        {"source": "", "context": name.partition(" ")[2], "model": model}
        | _prediction(json.loads(value) if isinstance(value, str) else None)
        for name in sorted(columns, key=_context_key)
        for model, value in zip(models, trials[name], strict=True)
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


def _prediction(item: Mapping[str, Any] | None, ends_in: str = "") -> dict[str, Any]:
    if item is None:
        return {}
    word, in_text, rank, top = item["next"], item.get("next_in_text"), item["rank"], item["top"]
    return {
        "next": word,
        "next_in_text": in_text,
        "next_shown": f"{in_text} (as {word})" if in_text not in (None, "", word) else word,
        "ends_in": item.get("context", ends_in),
        "probability": item["probability"],
        "rank": rank,
        "top": top,
        "hit": None if word == UNKNOWN else rank is not None and rank <= len(top),
    }


def _context_key(column: str) -> tuple[str, int]:
    group, _, number = column.rpartition(" ")
    return group, int(number)
