"""The tables of the results store, as its newest schema version has them. Older versions:
`migrations`."""

from __future__ import annotations

from datetime import UTC, datetime

import sqlalchemy as sa

from orchestrator.store.records import STATES

REVISIONS: tuple[str, ...] = ("0001", "0002", "0003", "0004", "0005", "0006", "0007")
"""Every schema version from the first to the newest, the ids of the files in
`migrations/versions`."""


class UtcDateTime(sa.TypeDecorator[datetime]):
    """A moment in UTC: aware in Python; `timestamptz` in PostgreSQL, text without an offset in
    SQLite."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        """To UTC; SQLite compares times as text, so all of them need the same form."""
        if value is None:
            return None
        assert value.tzinfo is not None, f"a time without a zone: {value}"
        return value.astimezone(UTC).replace(tzinfo=None if dialect.name == "sqlite" else UTC)

    def process_result_value(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        """From what the database holds, which is UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if dialect.name == "sqlite" else value.astimezone(UTC)


metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

study = sa.Table(
    "study",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("study", sa.Text, nullable=False),
    sa.Column("scale", sa.Text, nullable=False),
    sa.Column("corpus", sa.Text, nullable=False),
    sa.Column("overrides", sa.Text, nullable=False),
    sa.Column("planned_at", UtcDateTime, nullable=False),
    sa.Column("checksum", sa.String(64)),
    sa.UniqueConstraint("study", "scale", "corpus", "overrides"),
)

run = sa.Table(
    "run",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("code_version", sa.Text, nullable=False),
    sa.Column("packages", sa.Text, nullable=False),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("device", sa.Text, nullable=False),
    sa.Column("corpus_sha256", sa.Text, nullable=False),
    sa.Column("started_at", UtcDateTime, nullable=False),
    sa.Column("ended_at", UtcDateTime),
)

# The long columns come last: SQLite then finds the state without reading the config's overflow
# pages.
trial = sa.Table(
    "trial",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("state", sa.String(8), nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("owner", sa.Text, index=True),
    sa.Column("lease_until", UtcDateTime),
    sa.Column("planned_at", UtcDateTime, nullable=False),
    sa.Column("started_at", UtcDateTime),
    sa.Column("ended_at", UtcDateTime),
    sa.Column("run_id", sa.ForeignKey("run.id")),
    sa.Column("cause", sa.Text),
    sa.Column("environment", sa.Text),
    sa.Column("config", sa.Text, nullable=False),
    # Of a trial that has ended; what stands behind them: `checksums.py`.
    sa.Column("checksum", sa.String(64)),
    sa.Column("results_checksum", sa.String(64)),
    sa.Column("epochs_checksum", sa.String(64)),
    sa.Column("spectrum_checksum", sa.String(64)),
    sa.CheckConstraint(
        "state IN ({})".format(", ".join(f"'{state}'" for state in STATES)), name="state"
    ),
    sa.CheckConstraint("(state = 'running') = (owner IS NOT NULL)", name="owner"),
    sa.CheckConstraint("(owner IS NULL) = (lease_until IS NULL)", name="lease"),
    sa.CheckConstraint("attempt >= 0", name="attempt"),
)

study_trial = sa.Table(
    "study_trial",
    metadata,
    sa.Column("study_id", sa.ForeignKey("study.id"), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("trial_id", sa.ForeignKey("trial.id"), nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("side", sa.Text),
    sa.Column("stage", sa.String(8)),
    sa.Column("number", sa.Integer),
    sa.UniqueConstraint("study_id", "trial_id"),
    sa.CheckConstraint("stage IN ('stage1', 'stage2', 'final')", name="stage"),
    sa.CheckConstraint("(side IS NULL) = (stage IS NULL)", name="side"),
    sa.CheckConstraint(
        "(number IS NOT NULL) = (stage IS NOT NULL AND stage = 'stage2')", name="number"
    ),
)

stop_request = sa.Table(
    "stop_request",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("study_id", sa.ForeignKey("study.id")),
    sa.Column("trial_id", sa.ForeignKey("trial.id")),
    sa.Column("asked_at", UtcDateTime, nullable=False),
    sa.CheckConstraint("(study_id IS NULL) <> (trial_id IS NULL)", name="one"),
)

attempt = sa.Table(
    "attempt",
    metadata,
    sa.Column("trial_id", sa.ForeignKey("trial.id"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("place", sa.Text, nullable=False),
    sa.Column("started_at", UtcDateTime, nullable=False),
    sa.Column("ended_at", UtcDateTime),
    sa.Column("cause", sa.Text),
)

epoch = sa.Table(
    "epoch",
    metadata,
    sa.Column("trial_id", sa.ForeignKey("trial.id"), primary_key=True),
    sa.Column("epoch", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("tokens", sa.BigInteger, nullable=False),
    sa.Column("train_loss", sa.Double, nullable=False),
    sa.Column("valid_loss", sa.Double, nullable=False),
    sa.Column("averaging", sa.Boolean, nullable=False),
    sa.Column("seconds", sa.Double, nullable=False),
    sa.Column("press_rank", sa.Integer),
    sa.Column("entropy_rank", sa.Double),
    sa.Column("kl_rank", sa.Integer),
)

result = sa.Table(
    "result",
    metadata,
    sa.Column("trial_id", sa.ForeignKey("trial.id"), primary_key=True),
    sa.Column("measurement", sa.Text, primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("metrics", sa.Text, nullable=False),
    sa.Column("run_id", sa.ForeignKey("run.id"), nullable=False),
    sa.Column("recorded_at", UtcDateTime, nullable=False),
)

spectrum = sa.Table(
    "spectrum",
    metadata,
    sa.Column("trial_id", sa.ForeignKey("trial.id"), primary_key=True),
    sa.Column("length", sa.Integer, nullable=False),
    sa.Column("singular_values", sa.LargeBinary, nullable=False),
    sa.CheckConstraint("length(singular_values) = 8 * length", name="length"),
)
