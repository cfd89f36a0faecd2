"""The likeliest next words of every model at the same contexts (Fig. 3 of AAAI 2021)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from search_spaces.analyses import Predictions
from trainables.corpora import UNKNOWN

PREFIX = "top_k"


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What a model expects after one context."""

    next: str
    """The word that follows."""
    probability: float | None
    """What the model gives it; None if a paper prints only likelier words."""
    rank: int | None
    """Its place among all words, 1 for the likeliest; None as for `probability`."""
    top: Sequence[tuple[str, float]]
    """The likeliest words with their probabilities."""
    context: str = ""
    """Its last words; empty where the measurement was taken before it kept them."""
    next_in_text: str | None = None
    """What follows in the text, where the contexts say so; another word than `next` where the
    vocabulary was cut."""

    @property
    def next_shown(self) -> str:
        """The word that follows: "banknote (as <unk>)" where the vocabulary lacks it."""
        return (
            f"{self.next_in_text} (as {self.next})"
            if self.next_in_text not in (None, "", self.next)
            else self.next
        )

    @property
    def askable(self) -> bool:
        """Whether the word that follows is in the vocabulary: to expect some unknown word is no
        prediction of it."""
        return self.next != UNKNOWN

    @property
    def hit(self) -> bool:
        """Whether the word that follows is among the likeliest."""
        return self.askable and self.rank is not None and self.rank <= len(self.top)


@dataclass(frozen=True, kw_only=True)
class PredictionNumbers:
    """`cells[i][j]` is the j-th model's prediction at the i-th context; None where the trial has
    none."""

    contexts: tuple[str, ...]
    models: tuple[str, ...]
    cells: tuple[tuple[Prediction | None, ...], ...]
    trial_ids: tuple[str, ...]
    """Of the models."""
    source: str = ""
    """The table that prints the predictions; empty for trials."""
    printed: PredictionNumbers | None = None
    """What a paper prints at the same contexts."""

    @property
    def sides(self) -> tuple[PredictionNumbers, ...]:
        """These predictions, then the printed ones if there are any."""
        return (self, self.printed) if self.printed else (self,)

    @property
    def all_models(self) -> tuple[str, ...]:
        """The models of all sides, each once."""
        return tuple(dict.fromkeys(model for side in self.sides for model in side.models))

    @property
    def first(self) -> tuple[Prediction | None, ...]:
        """At each context that of the first model that has one: all of them have the same word
        following."""
        return tuple(next(filter(None, row), None) for row in self.cells)

    def hits(self, j: int) -> tuple[int, int]:
        """At how many contexts the j-th model has the true word among its likeliest, and at how
        many it could have."""
        askable = [cell for row in self.cells if (cell := row[j]) is not None and cell.askable]
        return sum(cell.hit for cell in askable), len(askable)

    @property
    def not_askable(self) -> int:
        """At how many contexts the vocabulary lacks the true word."""
        return sum(cell is not None and not cell.askable for cell in self.first)


def prediction_numbers(
    frame: pd.DataFrame, request: Predictions, *, corpus: str, tag: str = ""
) -> PredictionNumbers:
    """Read the metrics of the measurement top_k of the done trials; `tag` is that of the user's own
    contexts, at which nothing is printed."""
    prefix = f"{PREFIX}-{tag} " if tag else f"{PREFIX} "
    columns = sorted((name for name in frame.columns if name.startswith(prefix)), key=_place)
    done = frame[frame["state"] == "done"]
    numbers = PredictionNumbers(
        contexts=tuple(name.partition(" ")[2] for name in columns),
        # One model a trial: where several seeds repeat a group, the trials' names tell them apart.
        models=tuple(done["group" if done["group"].is_unique else "name"]),
        cells=tuple(
            tuple(
                Prediction(**json.loads(value)) if isinstance(value, str) else None
                for value in done[name]
            )
            for name in columns
        ),
        trial_ids=tuple(done["trial_id"]),
    )
    if tag or corpus not in request.published:
        return numbers
    published = request.published[corpus]
    printed = PredictionNumbers(
        contexts=numbers.contexts,
        models=tuple(published),
        cells=tuple(
            tuple(
                Prediction(**row[context], context=first.context if first else "")
                if context in row
                else None
                for row in published.values()
            )
            for context, first in zip(numbers.contexts, numbers.first, strict=True)
        ),
        trial_ids=("",) * len(published),
        source=request.source,
    )
    return replace(numbers, printed=printed)


def _place(column: str) -> tuple[str, int]:
    """By group in alphabetical order, then by number."""
    group, _, number = column.rpartition(" ")
    return group, int(number)
