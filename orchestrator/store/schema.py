"""Tables of the results store."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray
from sqlalchemy import (
    CheckConstraint,
    Column,
    DateTime,
    Dialect,
    Enum,
    ForeignKey,
    Index,
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
from trainables.config import canonical_json

VERSION = 1
"""Version number of these tables. A store with another one is refused."""


class UtcDateTime(TypeDecorator[datetime]):
    """Column of UTC times: `timestamptz` in PostgreSQL, text without offset in SQLite."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the time in UTC, because SQLite compares times as text."""
        if value is None:
            return None
        assert value.tzinfo is not None, f"a time without a zone: {value}"
        return value.astimezone(UTC).replace(tzinfo=None if dialect.name == "sqlite" else UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the stored time with its UTC time zone."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if dialect.name == "sqlite" else value.astimezone(UTC)


class SealedJson(TypeDecorator[dict[str, Any]]):
    """Column of JSON objects with a checksum: {"sha256":"16 digits","value":{...}}."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: dict[str, Any] | None, _dialect: Dialect) -> str | None:
        """Return the text to store. Raises ValueError for NaN and infinity."""
        return None if value is None else _sealed(canonical_json(value))

    def process_result_value(self, value: str | None, _dialect: Dialect) -> dict[str, Any] | None:
        """Return the stored object. Raises ValueError if its text has changed."""
        if value is None:
            return None
        text = value[len(_sealed("")) - 1 : -1]
        if value != _sealed(text):
            raise ValueError("a value has changed since it was written")
        content: dict[str, Any] = json.loads(text)
        return content


def _sealed(text: str) -> str:
    return f'{{"sha256":"{hashlib.sha256(text.encode()).hexdigest()[:16]}","value":{text}}}'


class SealedVector(TypeDecorator[NDArray[float64]]):
    """Column of float64 vectors: 8 bytes of SHA-256, then the little-endian numbers."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: Any, _dialect: Dialect) -> bytes:
        """Return the bytes to store."""
        content = value.astype("<f8").tobytes()
        return hashlib.sha256(content).digest()[:8] + content

    def process_result_value(self, value: Any, _dialect: Dialect) -> NDArray[float64]:
        """Return the stored vector. Raises ValueError if its bytes have changed."""
        if hashlib.sha256(value[8:]).digest()[:8] != value[:8]:
            raise ValueError("a spectrum has changed since it was written")
        return np.frombuffer(value, "<f8", offset=8).astype(float64)


metadata = MetaData()
required = partial(Column[Any], nullable=False)

schema_version = Table(
    "schema_version",
    metadata,
    Column("version", Integer, primary_key=True, autoincrement=False),
)

study = Table(
    "study",
    metadata,
    Column("id", Integer, primary_key=True),
    required("study", Text),
    required("scale", Text),
    required("corpus", Text),
    required("overrides", Text),
    required("planned_at", UtcDateTime),
    Column("stop_asked_at", UtcDateTime),
    UniqueConstraint("study", "scale", "corpus", "overrides"),
)
STUDY = (study.c.study, study.c.scale, study.c.corpus, study.c.overrides)

run = Table(
    "run",
    metadata,
    Column("id", Integer, primary_key=True),
    required("code_version", Text),
    required("packages", Text),
    required("host", Text),
    required("device", Text),
    required("corpus_sha256", Text),
    required("started_at", UtcDateTime),
    Column("ended_at", UtcDateTime),
)

_STATE = Enum(*STATES, native_enum=False, create_constraint=True, name="state")
# Long columns come last: SQLite then finds the state without reading the config's overflow pages.
# `id` is the SHA-256 of `config`.
trial = Table(
    "trial",
    metadata,
    Column("id", String(64), primary_key=True),
    required("state", _STATE),
    required("attempt", Integer),
    Column("owner", Text, index=True),
    Column("lease_until", UtcDateTime),
    Column("started_at", UtcDateTime),
    Column("ended_at", UtcDateTime),
    Column("stop_asked_at", UtcDateTime, index=True),
    Column("run_id", ForeignKey("run.id")),
    Column("outcome", SealedJson),  # cause and environment of an ended trial
    required("config", Text),
    CheckConstraint("(state = 'running') = (owner IS NOT NULL)", name="owner"),
    CheckConstraint("(owner IS NULL) = (lease_until IS NULL)", name="lease"),
    CheckConstraint("attempt >= 0", name="attempt"),
    # SQLite's check compares an index with its table and so detects changes in these columns.
    Index("ix_trial_state", "state", "attempt", "started_at", "ended_at"),
)

study_trial = Table(
    "study_trial",
    metadata,
    Column("study_id", ForeignKey("study.id"), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    required("trial_id", ForeignKey("trial.id")),
    required("name", Text),
    Column("side", Text),
    Column("stage", String(8)),
    Column("number", Integer),
    UniqueConstraint("study_id", "trial_id"),
    CheckConstraint("stage IN ('stage1', 'stage2', 'final')", name="stage"),
    CheckConstraint("(side IS NULL) = (stage IS NULL)", name="side"),
    CheckConstraint(
        "(number IS NOT NULL) = (stage IS NOT NULL AND stage = 'stage2')", name="number"
    ),
    Index("ix_study_trial_name", "name", "side", "stage", "number"),  # for SQLite's check, too
)


def _trial_id() -> Column[str]:
    return Column("trial_id", ForeignKey("trial.id"), primary_key=True)


attempt = Table(
    "attempt",
    metadata,
    _trial_id(),
    Column("started_at", UtcDateTime, primary_key=True),
    required("place", Text),
    Column("ended_at", UtcDateTime),
    Column("cause", Text),
)

epoch = Table(
    "epoch",
    metadata,
    _trial_id(),
    Column("epoch", Integer, primary_key=True, autoincrement=False),
    required("metrics", SealedJson),
)

result = Table(
    "result",
    metadata,
    _trial_id(),
    Column("measurement", Text, primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    required("metrics", SealedJson),
)

spectrum = Table(
    "spectrum",
    metadata,
    _trial_id(),
    required("singular_values", SealedVector),
)
