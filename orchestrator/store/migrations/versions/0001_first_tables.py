"""The first tables: all but `stop_request`, and `study_trial` without a trial's place in a tuning.

Nothing is to be done: whoever makes a store today makes the newest tables.
"""

from __future__ import annotations

revision = "0001"
down_revision = None


def upgrade() -> None:
    """No store is older than this version."""
