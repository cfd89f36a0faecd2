"""One page over all reports in a folder: question, progress and findings of each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from orchestrator.report.prose import sorting, template
from trainables.config import Frozen, Goal
from trainables.trial_folder import write_file

CARD_FILE = "summary.json"


class Card(Frozen):
    """A report's entry in the index, saved next to its page."""

    study: str = ""
    title: str
    variant: str
    question: str
    scale: str
    corpus: str = ""
    date: str = ""
    settings: str = ""
    """Values of `--set`, which distinguish reports of one study."""
    trials: str
    answer: str
    certainty: tuple[str, ...]
    """How sure the answer is; the first sentence counts the trials."""
    findings: tuple[Mapping[str, Any], ...] = ()
    """Every sentence of the report with its verdicts and numbers; the first is the answer."""
    goal: Goal | None = None
    """Goal of a study of a user's own code."""


def write_index(folder: Path) -> Path:
    """Write index.html over the reports below `folder`, in alphabetical order. Return its path."""
    cards = [
        (path.parent.name, card)
        for path in sorted(folder.glob(f"*/{CARD_FILE}"))
        if (card := read_card(path))
    ]
    path = folder / "index.html"
    write_file(
        path,
        template("index.html.j2")
        .render(cards=cards, **sorting())
        .encode(errors="backslashreplace"),
    )
    return path


def read_card(path: Path) -> Card | None:
    """Return a report's card, or None if it is missing or has another version."""
    try:
        return Card.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
