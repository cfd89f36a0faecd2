"""Requests to stop a study or a trial that is running somewhere."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "stop_request",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("study_id", sa.Integer(), sa.ForeignKey("study.id")),
        sa.Column("trial_id", sa.String(64), sa.ForeignKey("trial.id")),
        sa.Column("asked_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("(study_id IS NULL) <> (trial_id IS NULL)", name="one"),
    )
