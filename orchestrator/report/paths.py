"""How a reader of a page runs a trial alone."""

from __future__ import annotations

CONFIG_FILE = "trial.json"
"""A trial's config, as a page has a reader save it."""
RUN_ALONE = f"python -m trainables {CONFIG_FILE} --directory trial"
"""What a page has a reader type then."""
