"""Checksums of what is stored, and a database that refuses to change a done trial.

The checksums of what was recorded before are of what is there now. The columns are those of this
version. The way to make a checksum or a trigger of them is the program's present one: a later
version that changes it makes them anew."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from orchestrator.store.checksums import (
    end_checksum,
    rows_checksum,
    spectrum_checksum,
    study_checksum,
)
from orchestrator.store.triggers import make_triggers

revision = "0005"
down_revision = "0004"

ENDED = ("done", "pruned", "failed", "diverged")
END = ("id", "state", "attempt", "cause", "environment")
CHECKSUMS = ("checksum", "results_checksum", "epochs_checksum", "spectrum_checksum")
KEY = ("study", "scale", "corpus", "overrides")
MEMBER = ("position", "trial_id", "name", "side", "stage", "number")
FIXED = (
    "id, state, attempt, owner, lease_until, planned_at, started_at, ended_at, run_id, cause, "
    "environment, config, "
    "checksum, epochs_checksum"
)
BEFORE_AVERAGING = ("epoch", "tokens", "train_loss", "valid_loss")
AFTER_AVERAGING = ("seconds", "press_rank", "entropy_rank")

study = sa.table("study", *map(sa.column, ("id", *KEY, "checksum")))
study_trial = sa.table("study_trial", *map(sa.column, ("study_id", *MEMBER)))
trial = sa.table("trial", *map(sa.column, (*END, *CHECKSUMS)))
result = sa.table("result", *map(sa.column, ("measurement", "version", "metrics", "trial_id")))
epoch = sa.table(
    "epoch",
    *map(sa.column, BEFORE_AVERAGING),
    sa.column("averaging", sa.Boolean),
    *map(sa.column, (*AFTER_AVERAGING, "trial_id")),
)
spectrum = sa.table("spectrum", sa.column("singular_values", sa.LargeBinary), sa.column("trial_id"))


def upgrade() -> None:
    """Add the columns, fill them, make the triggers."""
    op.add_column("study", sa.Column("checksum", sa.String(64)))
    for name in CHECKSUMS:
        op.add_column("trial", sa.Column(name, sa.String(64)))
    connection = op.get_bind()
    for values in connection.execute(
        sa.select(*(trial.c[name] for name in END)).where(trial.c.state.in_(ENDED))
    ).all():
        checksums = {"checksum": end_checksum(values), **_part_checksums(connection, values[0])}
        connection.execute(trial.update().where(trial.c.id == values[0]).values(checksums))
    for study_id, *key in connection.execute(
        sa.select(*(study.c[name] for name in ("id", *KEY)))
    ).all():
        query = sa.select(*(study_trial.c[name] for name in MEMBER)).where(
            study_trial.c.study_id == study_id
        )
        checksum = study_checksum(key, connection.execute(query).all())
        connection.execute(study.update().where(study.c.id == study_id).values(checksum=checksum))
    make_triggers(connection, FIXED)


def _part_checksums(connection: sa.Connection, trial_id: str) -> dict[str, str | None]:
    """Of a trial's results, epochs and spectrum."""
    results, epochs, spectra = (
        connection.execute(sa.select(*list(table.c)[:-1]).where(table.c.trial_id == trial_id)).all()
        for table in (result, epoch, spectrum)
    )
    return {
        "results_checksum": rows_checksum(trial_id, results),
        "epochs_checksum": rows_checksum(trial_id, epochs),
        "spectrum_checksum": spectrum_checksum(trial_id, spectra[0][0] if spectra else None),
    }
