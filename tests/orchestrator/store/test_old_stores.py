"""Stores that earlier versions of this program wrote: they are upgraded, read as they were, and
gone on with."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import CheckConstraint, Connection, create_engine, inspect, select
from sqlalchemy.exc import DBAPIError

from orchestrator.plan import Plan, PlanRequest, Tuner, make_plan, scale_named
from orchestrator.store.integrity import check
from orchestrator.store.opening import alembic_config, open_database, open_store, upgrade
from orchestrator.store.records import Place, TrialState
from orchestrator.store.schema import REVISIONS, metadata
from orchestrator.store.store import Store
from orchestrator.store.triggers import drop_triggers, make_triggers, triggers
from search_spaces.catalog import load_study
from search_spaces.scales import SCALES, Scale
from tests.support.store_rows import KEY, SPECTRUM, damage, epoch, execute, ids, outcome, plan
from trainables.errors import UserError
from trainables.trial_folder import EpochMetrics

ROOT = Path(__file__).parents[3]
ASSETS = ROOT / "tests" / "assets"


def old_store(version: int, folder: Path) -> str:
    """A store as that schema version's program left it."""
    path = folder / "results.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((ASSETS / f"store_v{version}.sql").read_text())
    return f"sqlite:///{path}"


def smoke_plan(study: str, *, budget: int | None = None) -> Plan:
    return make_plan(load_study(study), scale_named("smoke"), "pydocs", PlanRequest(budget=budget))


def tuner(plan: Plan, store: Store) -> Tuner:
    assert plan.tuning is not None
    return Tuner(plan.tuning, plan.key, [trial.planned() for trial in plan.trials], store)


SMOKE = Scale(
    name="smoke",
    summary="as it was at schema version 2",
    width=0.03,
    dropout=0.25,
    learning_rate=0.3,
    batch_size=10,
    bptt=20,
    epochs=2,
    averaged_share=0.5,
    epoch_tokens=4_000,
    vocabulary_limit=300,
    valid_tokens=2_000,
    test_tokens=2_000,
)


@pytest.fixture
def upgraded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A smoke run of `gss_grid` and `fair_capacity` at schema version 2, upgraded; plans are at the
    scale of then."""
    monkeypatch.setitem(SCALES, "smoke", SMOKE)
    path = old_store(2, tmp_path)
    upgrade(path)
    return path


def test_a_store_that_version_1_wrote_opens_upgrades_and_reads_as_it_was(tmp_path: Path) -> None:
    path = old_store(1, tmp_path)
    upgrade(path)
    expected: list[TrialState] = ["done", "diverged", "failed", "running", "planned"]
    with open_store(path) as store:
        assert [row.state for row in store.trials(KEY)] == expected
        done, *_ = ids(plan(5))
        assert store.trials(KEY)[1].cause == "the loss is not finite"
        assert store.trials(KEY)[3].owner == "a driver"
        measured = outcome(done).measurements
        assert store.results(KEY)[0]["metrics"] == measured["perplexity@1"] | measured["spectrum@1"]
        assert list(store.spectra(KEY)) == [done]
        np.testing.assert_array_equal(store.spectra(KEY)[done], SPECTRUM)
        assert store.epochs(done) == [epoch(1), epoch(2), epoch(3)]
        assert store.environments(KEY)[done] == outcome(done).environment
    assert check(path) == []


@pytest.fixture
def first_version(store_url: str, tmp_path: Path) -> str:
    """A store of schema version 1 with five trials."""
    return stored(1, store_url, tmp_path)


def stored(version: int, store_url: str, folder: Path) -> str:
    """A store as that schema version's program left it, in a file or on a server: there its tables
    are made by taking away what came later, and filled with the same rows."""
    path = old_store(version, folder)
    if store_url.startswith("sqlite"):
        return path
    with open_store(store_url):
        pass
    source, target = create_engine(path), create_engine(store_url)
    with source.begin() as old, target.begin() as new:
        drop_triggers(new)
        for statements in reversed(list(LATER.values())[version - 1 :]):
            for statement in statements:
                new.exec_driver_sql(statement)
        new.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{REVISIONS[version - 1]}'")
        for table in metadata.sorted_tables:
            if inspect(old).has_table(table.name):
                columns = [
                    table.c[column["name"]] for column in inspect(old).get_columns(table.name)
                ]
                rows = [dict(row) for row in old.execute(select(*columns)).mappings()]
                if rows:
                    new.execute(table.insert(), rows)
        if version >= 5:
            make_triggers(new)
    source.dispose()
    target.dispose()
    return store_url


LATER = {
    2: ["DROP TABLE stop_request"],
    3: ["ALTER TABLE study_trial DROP COLUMN side, DROP COLUMN stage, DROP COLUMN number"],
    4: ["ALTER TABLE epoch DROP COLUMN press_rank, DROP COLUMN entropy_rank"],
    5: [
        "ALTER TABLE study DROP COLUMN checksum",
        "ALTER TABLE trial DROP COLUMN checksum, DROP COLUMN results_checksum, DROP COLUMN "
        "epochs_checksum, "
        "DROP COLUMN spectrum_checksum",
        "DROP FUNCTION refuse_change_of_done",
    ],
    6: ["DROP TABLE attempt"],
    7: ["ALTER TABLE epoch DROP COLUMN kl_rank"],
}
"""By schema version, what takes away what it brought."""


def numbers(version: int, table: str, columns: str) -> list[tuple[Any, ...]]:
    """What that version's program wrote, read without any of ours."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript((ASSETS / f"store_v{version}.sql").read_text())
        return sorted(connection.execute(f"SELECT {columns} FROM {table}"))


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 6])
def test_every_number_of_an_old_store_is_the_same_after_the_upgrade_and_guarded(
    version: int, store_url: str, tmp_path: Path
) -> None:
    path = stored(version, store_url, tmp_path)
    assert f"to {REVISIONS[-1]}" in upgrade(path)
    assert check(path) == []
    metrics: dict[str, dict[str, object]] = {}
    epochs: dict[str, list[EpochMetrics]] = {}
    spectra: dict[str, np.ndarray] = {}
    environments: dict[str, dict[str, str]] = {}
    with open_store(path) as store:
        for summary in store.studies():
            metrics |= {row["trial_id"]: row["metrics"] for row in store.results(summary.key)}
            epochs |= store.epochs_by_trial(summary.key)
            spectra |= store.spectra(summary.key)
            environments |= store.environments(summary.key)
    expected: dict[str, dict[str, object]] = {row[0]: {} for row in numbers(version, "trial", "id")}
    for trial_id, text in numbers(version, "result", "trial_id, metrics"):
        expected[trial_id] |= json.loads(text)
    assert metrics == expected
    losses = [
        (key, row.epoch, row.tokens, row.train_loss, row.valid_loss)
        for key in epochs
        for row in epochs[key]
    ]
    assert sorted(losses) == numbers(
        version, "epoch", "trial_id, epoch, tokens, train_loss, valid_loss"
    )
    values = sorted((key, spectrum.tobytes()) for key, spectrum in spectra.items())
    assert values == numbers(version, "spectrum", "trial_id, singular_values")
    written = numbers(version, "trial WHERE environment IS NOT NULL", "id, environment")
    assert environments == {key: json.loads(text) for key, text in written}
    done = numbers(version, "trial WHERE state = 'done'", "id")[0][0]
    with pytest.raises(DBAPIError, match="a done trial never changes"):
        execute(path, "UPDATE epoch SET valid_loss = 1 WHERE trial_id = :id", id=done)
    damage(path, "UPDATE epoch SET valid_loss = 1 WHERE trial_id = :id", id=done)
    with open_store(path) as store, pytest.raises(UserError, match="damaged"):
        store.epochs(done)


DAMAGES = [
    "UPDATE result SET metrics = x'ff'",
    "UPDATE result SET metrics = CAST(x'ff' AS TEXT)",
    "UPDATE trial SET environment = x'ff'",
    "UPDATE epoch SET epoch = 'one' WHERE epoch = 1",
    "UPDATE spectrum SET singular_values = 'abcdefgh', length = 1",
    "UPDATE alembic_version SET version_num = CAST(x'ff' AS TEXT)",
]


@pytest.mark.parametrize("change", DAMAGES)
def test_a_damaged_old_store_is_left_as_it_was_and_the_sentence_says_what_helps(
    tmp_path: Path, change: str
) -> None:
    """Not the check, which asks for the upgrade."""
    path = old_store(4, tmp_path)
    execute(path, change)
    with pytest.raises(
        UserError, match=r"\): put back a copy of it, or name another store"
    ) as caught:
        upgrade(path)
    assert "store check" not in str(caught.value)
    with closing(sqlite3.connect(tmp_path / "results.db")) as connection:
        columns = [
            name for (name,) in connection.execute("SELECT name FROM pragma_table_info('trial')")
        ]
    assert "config" in columns and "checksum" not in columns


LATER_COLUMNS = """
import sys
import sqlalchemy as sa
from orchestrator.store import schema
for table in (schema.trial, schema.study, schema.study_trial, schema.result, schema.epoch, schema.spectrum):
    table.append_column(sa.Column("later", sa.Text))
from orchestrator.store.opening import upgrade
print(upgrade(sys.argv[1]))
"""


def test_a_program_with_more_columns_upgrades_to_this_version_as_this_one_does(
    tmp_path: Path,
) -> None:
    """Its next migration, which would add them, comes after the one to this version."""
    path = old_store(4, tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", LATER_COLUMNS, path], capture_output=True, text=True, cwd=ROOT
    )
    assert f"to {REVISIONS[-1]}" in done.stdout, done.stderr
    assert check(path) == []


def test_a_store_of_the_first_version_gets_the_newest_tables_and_places_filled_from_names(
    first_version: str,
) -> None:
    names = ["a stage1 x=1", "a stage2 #12 x=2", "b final seed=3", "gss c=-1.5 k=2.5", "stage1 x=1"]
    for position, name in enumerate(names):
        execute(
            first_version,
            "UPDATE study_trial SET name = :name WHERE position = :at",
            name=name,
            at=position,
        )
    with pytest.raises(
        UserError, match=r"schema version 0001.*run `python sweep.py store upgrade` on it"
    ):
        open_store(first_version)
    assert f"from schema version 0001 to {REVISIONS[-1]}" in upgrade(first_version)
    assert "already" in upgrade(first_version)
    with (
        closing(open_database(first_version, create=False)) as database,
        database.read() as connection,
    ):
        migrations = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(migrations, metadata) == []
        # Alembic compares no CHECK constraints.
        for table in metadata.sorted_tables:
            made = {
                constraint["name"]
                for constraint in inspect(connection).get_check_constraints(table.name)
            }
            declared = {
                rule.name for rule in table.constraints if isinstance(rule, CheckConstraint)
            }
            assert made == declared
        assert trigger_names(connection) == set(triggers(connection.dialect.name))
        scripts = ScriptDirectory.from_config(alembic_config(connection)).walk_revisions()
        assert tuple(script.revision for script in scripts)[::-1] == REVISIONS
    with open_store(first_version) as store:
        rows = store.trials(KEY)
        assert [row.name for row in rows] == names
        assert [row.place for row in rows] == [
            Place(side="a", stage="stage1"),
            Place(side="a", stage="stage2", number=12),
            Place(side="b", stage="final"),
            None,
            None,
        ]
        store.ask_to_stop(rows[0].trial_id)


def trigger_names(connection: Connection) -> set[str]:
    """Of the triggers that the database has."""
    if connection.dialect.name == "sqlite":
        query = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    else:
        query = (
            "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgrelid = 'trial'::regclass"
        )
        query += " OR tgrelid IN ('epoch'::regclass, 'result'::regclass, 'spectrum'::regclass) AND NOT tgisinternal"
    return set(connection.exec_driver_sql(query).scalars())


def test_nothing_that_version_2_recorded_is_run_again(upgraded: str) -> None:
    with open_store(upgraded) as store:
        grid = smoke_plan("gss_grid")
        assert store.states([trial.trial_id for trial in grid.trials]) == {
            t.trial_id: "done" for t in grid.trials
        }
        assert store.lacking(grid.key, ("perplexity@1", "spectrum@1")) == {}
        assert len(store.spectra(grid.key)) == len(grid.trials)
        tuning = smoke_plan("fair_capacity")
        assert tuner(tuning, store).over
        assert len(store.trials(tuning.key)) == tuning.total
    assert check(upgraded) == []


def test_a_tuning_of_version_2_asks_for_the_trials_that_the_old_program_asked_for(
    upgraded: str,
) -> None:
    """Of a study cut back to what was known after the second trials of stage 2, the rest is planned
    as it was."""
    plan = smoke_plan("fair_capacity")
    with open_store(upgraded) as store:
        before = store.trials(plan.key)
        early = [
            row.planned()
            for row in before
            if any(part in row.name for part in (" stage1 ", " #1 ", " #2 "))
        ]
        assert len(early) == 12
        store.register(plan.key, early)
        search = tuner(plan, store)
        search.start()
        assert search.more(()) is None, "all that it asks for is done"
        assert store.trials(plan.key) == before
