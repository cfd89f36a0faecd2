"""Most probable next words of every model at the same contexts (Fig. 3 of AAAI 2021)."""

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
    """Return the done trials' predictions by context, then the paper's.

    A `tag` selects the user's own contexts, which the paper does not have. Columns:

    - source: empty for our trials.
    - next_shown: the true next word, such as "banknote (as <unk>)" if outside the vocabulary.
    - rank: rank of the true word, 1 for the most probable; None if the paper's list ends before it.
    - hit: `top` contains the true word; None for <unk>, which is no particular word.
    """
    prefix = f"{PREFIX}-{tag} " if tag else f"{PREFIX} "
    trials = frame[frame["state"] == "done"]
    columns = [
        name for name in trials.columns if name.startswith(prefix) and trials[name].notna().any()
    ]
    # Each trial is a separate model: trial names distinguish seeds of a group.
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
