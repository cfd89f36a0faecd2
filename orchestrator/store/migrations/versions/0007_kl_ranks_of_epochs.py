"""KL ranks at the end of an epoch; of those that were recorded before, none, and their checksums
are the same."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the column."""
    op.add_column("epoch", sa.Column("kl_rank", sa.Integer()))
