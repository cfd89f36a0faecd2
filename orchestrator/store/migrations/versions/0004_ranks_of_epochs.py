"""Ranks at the end of an epoch; of those that were recorded before, none."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the columns."""
    op.add_column("epoch", sa.Column("press_rank", sa.Integer()))
    op.add_column("epoch", sa.Column("entropy_rank", sa.Double()))
