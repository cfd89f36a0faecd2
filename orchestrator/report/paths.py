"""Where the files of a report lie, seen from its page."""

from __future__ import annotations

from orchestrator.analysis import ID_DIGITS
from orchestrator.words import file_name

TRIALS_FOLDER = "trials"
CONFIG_FILE = "trial.json"
"""A trial's config, as a page has a reader save it."""
RUN_ALONE = f"python -m trainables {CONFIG_FILE} --directory trial"
"""What a page has a reader type then."""


def trial_page(trial_id: str) -> str:
    """The page of a trial."""
    return f"{TRIALS_FOLDER}/{file_name(trial_id[:ID_DIGITS])}.html"
