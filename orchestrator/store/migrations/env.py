"""Alembic's entry: runs migrations inside the transaction that the caller holds, or not at all."""

from __future__ import annotations

from alembic import context

from orchestrator.store.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
