"""A tuned trial's side, stage and number: columns now, where they were read from its name
before."""

from __future__ import annotations

import re

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

NAME = re.compile(r"(?P<side>\S+) (?P<stage>stage1|stage2 #(?P<number>\d+)|final) ")
"""How the names of a tuning's trials began: "mos_dagger stage2 #7 de=0.31 dh=0.2"."""


def upgrade() -> None:
    """Add the columns and fill them from the names."""
    with op.batch_alter_table("study_trial") as table:
        table.add_column(sa.Column("side", sa.Text()))
        table.add_column(sa.Column("stage", sa.String(8)))
        table.add_column(sa.Column("number", sa.Integer()))
        table.create_check_constraint("stage", "stage IN ('stage1', 'stage2', 'final')")
        table.create_check_constraint("side", "(side IS NULL) = (stage IS NULL)")
        table.create_check_constraint(
            "number", "(number IS NOT NULL) = (stage IS NOT NULL AND stage = 'stage2')"
        )
    members = sa.table(
        "study_trial", *map(sa.column, ("study_id", "position", "name", "side", "stage", "number"))
    )
    connection = op.get_bind()
    for row in connection.execute(sa.select(members)).all():
        name = NAME.match(row.name)
        if name is not None:
            number = name["number"] and int(name["number"])
            values = {"side": name["side"], "stage": name["stage"].split()[0], "number": number}
            place = (members.c.study_id == row.study_id) & (members.c.position == row.position)
            connection.execute(members.update().where(place).values(values))
