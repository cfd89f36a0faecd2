"""One page over all reports in a folder: what each asks, how far it is, what it says."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from orchestrator.report.prose import sorting, template
from trainables.config import Frozen
from trainables.trial_folder import write_file

CARD_FILE = "summary.json"
FINDINGS_SHOWN = 5


class Card(Frozen):
    """What the index says of one report; each report leaves its own beside its page."""

    study: str = ""
    title: str
    variant: str
    question: str
    scale: str
    corpus: str = ""
    date: str = ""
    settings: str = ""
    """What was typed after `--set`: of two reports of one study it is the difference."""
    trials: str
    findings: tuple[str, ...]


def write_index(folder: Path) -> Path:
    """Write index.html over the reports below the folder, in alphabetical order; returns its
    path."""
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
    """What a report has left of itself; None where it has not, or another version has."""
    try:
        return Card.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
