"""The first tables: study, run, trial, study_trial, epoch, result, spectrum."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make all tables in an empty database."""
    _studies_and_runs()
    _trials()
    _results()


def _studies_and_runs() -> None:
    op.create_table(
        "study",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("study", sa.Text(), nullable=False),
        sa.Column("scale", sa.Text(), nullable=False),
        sa.Column("corpus", sa.Text(), nullable=False),
        sa.Column("overrides", sa.Text(), nullable=False),
        sa.Column("planned_at", MOMENT, nullable=False),
        sa.UniqueConstraint("study", "scale", "corpus", "overrides"),
    )
    op.create_table(
        "run",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("code_version", sa.Text(), nullable=False),
        sa.Column("packages", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("device", sa.Text(), nullable=False),
        sa.Column("corpus_sha256", sa.Text(), nullable=False),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("ended_at", MOMENT),
    )


def _trials() -> None:
    op.create_table(
        "trial",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("state", sa.String(8), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("owner", sa.Text(), index=True),
        sa.Column("lease_until", MOMENT),
        sa.Column("planned_at", MOMENT, nullable=False),
        sa.Column("started_at", MOMENT),
        sa.Column("ended_at", MOMENT),
        sa.Column("run_id", sa.Integer(), sa.ForeignKey("run.id")),
        sa.Column("cause", sa.Text()),
        sa.Column("environment", sa.Text()),
        sa.Column("config", sa.Text(), nullable=False),
        sa.CheckConstraint("state IN ('planned', 'running', 'done', 'diverged', 'failed', 'pruned')", name="state"),
        sa.CheckConstraint("(state = 'running') = (owner IS NOT NULL)", name="owner"),
        sa.CheckConstraint("(owner IS NULL) = (lease_until IS NULL)", name="lease"),
        sa.CheckConstraint("attempt >= 0", name="attempt"),
    )
    op.create_table(
        "study_trial",
        sa.Column("study_id", sa.Integer(), sa.ForeignKey("study.id"), primary_key=True),
        sa.Column("position", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("trial_id", sa.String(64), sa.ForeignKey("trial.id"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.UniqueConstraint("study_id", "trial_id"),
    )


def _results() -> None:
    op.create_table(
        "epoch",
        sa.Column("trial_id", sa.String(64), sa.ForeignKey("trial.id"), primary_key=True),
        sa.Column("epoch", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("train_loss", sa.Double(), nullable=False),
        sa.Column("valid_loss", sa.Double(), nullable=False),
        sa.Column("averaging", sa.Boolean(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
    )
    op.create_table(
        "result",
        sa.Column("trial_id", sa.String(64), sa.ForeignKey("trial.id"), primary_key=True),
        sa.Column("measurement", sa.Text(), primary_key=True),
        sa.Column("version", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("metrics", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Integer(), sa.ForeignKey("run.id"), nullable=False),
        sa.Column("recorded_at", MOMENT, nullable=False),
    )
    op.create_table(
        "spectrum",
        sa.Column("trial_id", sa.String(64), sa.ForeignKey("trial.id"), primary_key=True),
        sa.Column("length", sa.Integer(), nullable=False),
        sa.Column("singular_values", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint("length(singular_values) = 8 * length", name="length"),
    )
