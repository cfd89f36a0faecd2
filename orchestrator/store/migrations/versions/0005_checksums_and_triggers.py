"""Checksums of what is stored, and a database that refuses to change a done trial.

The checksums of what was recorded before are of what is there now. The triggers and the way to make a checksum are the
program's present ones: a later version that changes them makes them anew.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from orchestrator.store.checksums import add_checksums
from orchestrator.store.triggers import make_triggers

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the columns, fill them, make the triggers."""
    op.add_column("study", sa.Column("checksum", sa.String(64)))
    for name in ("checksum", "results_checksum", "epochs_checksum", "spectrum_checksum"):
        op.add_column("trial", sa.Column(name, sa.String(64)))
    add_checksums(op.get_bind())
    make_triggers(op.get_bind())
