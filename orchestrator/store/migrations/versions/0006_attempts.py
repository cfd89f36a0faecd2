"""Attempts: where workers made them, when, and what ended them. Of those before, only the count is
known."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the table."""
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "attempt",
        sa.Column("trial_id", sa.String(64), sa.ForeignKey("trial.id"), primary_key=True),
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("place", sa.Text(), nullable=False),
        sa.Column("started_at", moment, nullable=False),
        sa.Column("ended_at", moment),
        sa.Column("cause", sa.Text()),
    )
