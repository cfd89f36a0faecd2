"""Tables of the results store, and the upgrades of older stores."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy import float64
from numpy.typing import NDArray

from orchestrator.store.records import STATES

UPGRADES: list[Callable[[sa.Connection], None]] = []
"""Functions that upgrade an older store. The first makes version 2 from version 1, and so on.

All run in one transaction. Never change a released upgrade.
"""


def newest_version() -> int:
    """Return the version number of the current tables."""
    return 1 + len(UPGRADES)


def canonical_json(value: Any) -> str:
    """Return JSON with sorted keys and no spaces, as `TrialConfig.canonical_json` does."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


class UtcDateTime(sa.TypeDecorator[datetime]):
    """Column of UTC times: `timestamptz` in PostgreSQL, text without offset in SQLite."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        """Return the time in UTC, because SQLite compares times as text."""
        if value is None:
            return None
        assert value.tzinfo is not None, f"a time without a zone: {value}"
        return value.astimezone(UTC).replace(tzinfo=None if dialect.name == "sqlite" else UTC)

    def process_result_value(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        """Return the stored time with its UTC time zone."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if dialect.name == "sqlite" else value.astimezone(UTC)


class SealedJson(sa.TypeDecorator[dict[str, Any]]):
    """Column of JSON objects with a checksum: {"sha256":"16 digits","value":{...}}."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: dict[str, Any] | None, _dialect: sa.Dialect) -> str | None:
        """Return the text to store. Raises ValueError for NaN and infinity."""
        return None if value is None else _sealed(canonical_json(value))

    def process_result_value(
        self, value: str | None, _dialect: sa.Dialect
    ) -> dict[str, Any] | None:
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


class SealedVector(sa.TypeDecorator[NDArray[float64]]):
    """Column of float64 vectors: 8 bytes of SHA-256, then the little-endian numbers."""

    impl = sa.LargeBinary
    cache_ok = True

    def process_bind_param(self, value: Any, _dialect: sa.Dialect) -> bytes:
        """Return the bytes to store."""
        content = value.astype("<f8").tobytes()
        return hashlib.sha256(content).digest()[:8] + content

    def process_result_value(self, value: Any, _dialect: sa.Dialect) -> NDArray[float64]:
        """Return the stored vector. Raises ValueError if its bytes have changed."""
        if hashlib.sha256(value[8:]).digest()[:8] != value[:8]:
            raise ValueError("a spectrum has changed since it was written")
        return np.frombuffer(value, "<f8", offset=8).astype(float64)


metadata = sa.MetaData()

schema_version = sa.Table(
    "schema_version",
    metadata,
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
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
    sa.Column("stop_asked_at", UtcDateTime),
    sa.UniqueConstraint("study", "scale", "corpus", "overrides"),
)
STUDY = (study.c.study, study.c.scale, study.c.corpus, study.c.overrides)

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

_STATE = sa.Enum(*STATES, native_enum=False, create_constraint=True, name="state")
# Long columns come last: SQLite then finds the state without reading the config's overflow pages.
# `id` is the SHA-256 of `config`.
trial = sa.Table(
    "trial",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("state", _STATE, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("owner", sa.Text, index=True),
    sa.Column("lease_until", UtcDateTime),
    sa.Column("started_at", UtcDateTime),
    sa.Column("ended_at", UtcDateTime),
    sa.Column("stop_asked_at", UtcDateTime, index=True),
    sa.Column("run_id", sa.ForeignKey("run.id")),
    sa.Column("outcome", SealedJson),  # cause and environment of an ended trial
    sa.Column("config", sa.Text, nullable=False),
    sa.CheckConstraint("(state = 'running') = (owner IS NOT NULL)", name="owner"),
    sa.CheckConstraint("(owner IS NULL) = (lease_until IS NULL)", name="lease"),
    sa.CheckConstraint("attempt >= 0", name="attempt"),
    # SQLite's check compares an index with its table and so detects changes in these columns.
    sa.Index("ix_trial_state", "state", "attempt", "started_at", "ended_at"),
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
    sa.Index("ix_study_trial_name", "name", "side", "stage", "number"),  # for SQLite's check, too
)


def _trial_id() -> sa.Column[str]:
    return sa.Column("trial_id", sa.ForeignKey("trial.id"), primary_key=True)


attempt = sa.Table(
    "attempt",
    metadata,
    _trial_id(),
    sa.Column("started_at", UtcDateTime, primary_key=True),
    sa.Column("place", sa.Text, nullable=False),
    sa.Column("ended_at", UtcDateTime),
    sa.Column("cause", sa.Text),
)

epoch = sa.Table(
    "epoch",
    metadata,
    _trial_id(),
    sa.Column("epoch", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("metrics", SealedJson, nullable=False),
)

result = sa.Table(
    "result",
    metadata,
    _trial_id(),
    sa.Column("measurement", sa.Text, primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("metrics", SealedJson, nullable=False),
)

spectrum = sa.Table(
    "spectrum",
    metadata,
    _trial_id(),
    sa.Column("singular_values", SealedVector, nullable=False),
)
