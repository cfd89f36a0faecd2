"""The store's schema versions, one file each, run by Alembic from `orchestrator.store.opening`."""
