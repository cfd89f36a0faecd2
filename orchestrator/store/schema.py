"""The tables of the results store, as its newest schema version has them. Older versions: `migrations`."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Dialect,
    Double,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)

from orchestrator.store.records import STATES

REVISIONS: tuple[str, ...] = ("0001", "0002", "0003")
"""Every schema version from the first to the newest, the ids of the files in `migrations/versions`."""


class UtcDateTime(TypeDecorator[datetime]):
    """A moment in UTC: aware in Python; `timestamptz` in PostgreSQL, text without an offset in SQLite."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """To UTC; SQLite compares times as text, so all of them need the same form."""
        if value is None:
            return None
        assert value.tzinfo is not None, f"a time without a zone: {value}"
        utc = value.astimezone(UTC)
        return utc.replace(tzinfo=None) if dialect.name == "sqlite" else utc

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """From what the database holds, which is UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if dialect.name == "sqlite" else value.astimezone(UTC)


metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

study = Table(
    "study",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("study", Text, nullable=False),
    Column("scale", Text, nullable=False),
    Column("corpus", Text, nullable=False),
    Column("overrides", Text, nullable=False),
    Column("planned_at", UtcDateTime, nullable=False),
    UniqueConstraint("study", "scale", "corpus", "overrides"),
)

run = Table(
    "run",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("code_version", Text, nullable=False),
    Column("packages", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("device", Text, nullable=False),
    Column("corpus_sha256", Text, nullable=False),
    Column("started_at", UtcDateTime, nullable=False),
    Column("ended_at", UtcDateTime),
)

# The long columns come last: SQLite then finds the state without reading the config's overflow pages.
trial = Table(
    "trial",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("state", String(8), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("owner", Text, index=True),
    Column("lease_until", UtcDateTime),
    Column("planned_at", UtcDateTime, nullable=False),
    Column("started_at", UtcDateTime),
    Column("ended_at", UtcDateTime),
    Column("run_id", ForeignKey("run.id")),
    Column("cause", Text),
    Column("environment", Text),
    Column("config", Text, nullable=False),
    CheckConstraint("state IN ({})".format(", ".join(f"'{state}'" for state in STATES)), name="state"),
    CheckConstraint("(state = 'running') = (owner IS NOT NULL)", name="owner"),
    CheckConstraint("(owner IS NULL) = (lease_until IS NULL)", name="lease"),
    CheckConstraint("attempt >= 0", name="attempt"),
)

study_trial = Table(
    "study_trial",
    metadata,
    Column("study_id", ForeignKey("study.id"), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("trial_id", ForeignKey("trial.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("side", Text),
    Column("stage", String(8)),
    Column("number", Integer),
    UniqueConstraint("study_id", "trial_id"),
    CheckConstraint("stage IN ('stage1', 'stage2', 'final')", name="stage"),
    CheckConstraint("(side IS NULL) = (stage IS NULL)", name="side"),
    CheckConstraint("(number IS NOT NULL) = (stage IS NOT NULL AND stage = 'stage2')", name="number"),
)

stop_request = Table(
    "stop_request",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("study_id", ForeignKey("study.id")),
    Column("trial_id", ForeignKey("trial.id")),
    Column("asked_at", UtcDateTime, nullable=False),
    CheckConstraint("(study_id IS NULL) <> (trial_id IS NULL)", name="one"),
)

epoch = Table(
    "epoch",
    metadata,
    Column("trial_id", ForeignKey("trial.id"), primary_key=True),
    Column("epoch", Integer, primary_key=True, autoincrement=False),
    Column("tokens", BigInteger, nullable=False),
    Column("train_loss", Double, nullable=False),
    Column("valid_loss", Double, nullable=False),
    Column("averaging", Boolean, nullable=False),
    Column("seconds", Double, nullable=False),
)

result = Table(
    "result",
    metadata,
    Column("trial_id", ForeignKey("trial.id"), primary_key=True),
    Column("measurement", Text, primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("metrics", Text, nullable=False),
    Column("run_id", ForeignKey("run.id"), nullable=False),
    Column("recorded_at", UtcDateTime, nullable=False),
)

spectrum = Table(
    "spectrum",
    metadata,
    Column("trial_id", ForeignKey("trial.id"), primary_key=True),
    Column("length", Integer, nullable=False),
    Column("singular_values", LargeBinary, nullable=False),
    CheckConstraint("length(singular_values) = 8 * length", name="length"),
)
