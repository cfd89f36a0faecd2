"""The tables that the program believes in are those that the migrations make."""

from __future__ import annotations

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import CheckConstraint, Table, create_engine, inspect
from sqlalchemy.exc import IntegrityError

from orchestrator.store.opening import alembic_config, open_store
from orchestrator.store.schema import REVISIONS, metadata, study_trial, trial
from tests.support.store_rows import KEY, plan


def test_the_migrations_make_exactly_the_tables_of_the_schema(url: str) -> None:
    open_store(url).close()
    engine = create_engine(url)
    with engine.connect() as connection:
        migrations = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(migrations, metadata) == []
        # Alembic compares no CHECK constraints.
        for table in metadata.sorted_tables:
            made = {constraint["name"] for constraint in inspect(connection).get_check_constraints(table.name)}
            declared = {rule.name for rule in table.constraints if isinstance(rule, CheckConstraint)}
            assert made == declared
    engine.dispose()


def test_the_list_of_versions_is_that_of_the_migrations() -> None:
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        scripts = ScriptDirectory.from_config(alembic_config(connection)).walk_revisions()
        assert tuple(script.revision for script in scripts)[::-1] == REVISIONS
    engine.dispose()


@pytest.mark.parametrize(
    ("table", "change"),
    [
        (trial, {"state": "finished"}),
        (trial, {"state": "running"}),
        (trial, {"owner": "nobody runs it"}),
        (trial, {"attempt": -1}),
        (study_trial, {"trial_id": "f" * 64}),
        (study_trial, {"stage": "final"}),
        (study_trial, {"side": "a", "stage": "stage2"}),
        (study_trial, {"side": "a", "stage": "stage3"}),
    ],
)
def test_the_database_itself_refuses_what_makes_no_sense(url: str, table: Table, change: dict[str, object]) -> None:
    with open_store(url) as store:
        store.register(KEY, plan(1))
    engine = create_engine(url)
    with pytest.raises(IntegrityError), engine.begin() as connection:
        if url.startswith("sqlite"):
            connection.exec_driver_sql("PRAGMA foreign_keys = ON")
        connection.execute(table.update().values(change))
    engine.dispose()
