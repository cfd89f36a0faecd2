"""Stores that earlier versions of this program wrote: they are upgraded, read as they were, and gone on with."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import CheckConstraint, inspect

from orchestrator.plan.study_plan import Plan, PlanRequest, make_plan, scale_named
from orchestrator.plan.tuning.tuner import Tuner
from orchestrator.store.integrity import check
from orchestrator.store.opening import alembic_config, open_database, open_store, upgrade
from orchestrator.store.records import Place, TrialState
from orchestrator.store.schema import REVISIONS, metadata
from orchestrator.store.store import Store
from search_spaces.catalog import load_study
from search_spaces.scales import SCALES, Scale
from tests.support.store_rows import KEY, SPECTRUM, epoch, execute, ids, outcome, plan
from trainables.errors import UserError

ASSETS = Path(__file__).parents[2] / "assets"


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
    """A smoke run of `gss_grid` and `fair_capacity` at schema version 2, upgraded; plans are at the scale of then."""
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
    """A store of schema version 1 with five trials: as its program left it, and on a server by taking away what came
    later."""
    if store_url.startswith("sqlite"):
        return old_store(1, tmp_path)
    with open_store(store_url) as store:
        store.register(KEY, plan(5))
    execute(
        store_url,
        "DROP TABLE stop_request",
        "ALTER TABLE epoch DROP COLUMN press_rank, DROP COLUMN entropy_rank",
        "ALTER TABLE study_trial DROP COLUMN side, DROP COLUMN stage, DROP COLUMN number",
        "UPDATE alembic_version SET version_num = '0001'",
    )
    return store_url


def test_a_store_of_the_first_version_gets_the_newest_tables_and_places_filled_from_names(first_version: str) -> None:
    names = ["a stage1 x=1", "a stage2 #12 x=2", "b final seed=3", "gss c=-1.5 k=2.5", "stage1 x=1"]
    for position, name in enumerate(names):
        execute(first_version, "UPDATE study_trial SET name = :name WHERE position = :at", name=name, at=position)
    with pytest.raises(UserError, match=r"schema version 0001.*run `python sweep.py store upgrade` on it"):
        open_store(first_version)
    assert f"from schema version 0001 to {REVISIONS[-1]}" in upgrade(first_version)
    assert "already" in upgrade(first_version)
    with closing(open_database(first_version, create=False)) as database, database.read() as connection:
        migrations = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(migrations, metadata) == []
        # Alembic compares no CHECK constraints.
        for table in metadata.sorted_tables:
            made = {constraint["name"] for constraint in inspect(connection).get_check_constraints(table.name)}
            declared = {rule.name for rule in table.constraints if isinstance(rule, CheckConstraint)}
            assert made == declared
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


def test_nothing_that_version_2_recorded_is_run_again(upgraded: str) -> None:
    with open_store(upgraded) as store:
        grid = smoke_plan("gss_grid")
        assert store.states([trial.trial_id for trial in grid.trials]) == {t.trial_id: "done" for t in grid.trials}
        assert store.lacking(grid.key, grid.measurements) == {}
        assert len(store.spectra(grid.key)) == len(grid.trials)
        tuning = smoke_plan("fair_capacity")
        assert tuner(tuning, store).over
        assert len(store.trials(tuning.key)) == tuning.total
    assert check(upgraded) == []


def test_a_tuning_of_version_2_asks_for_the_trials_that_the_old_program_asked_for(upgraded: str) -> None:
    """Of a study cut back to what was known after the second trials of stage 2, the rest is planned as it was."""
    plan = smoke_plan("fair_capacity")
    with open_store(upgraded) as store:
        before = store.trials(plan.key)
        early = [row.planned() for row in before if any(part in row.name for part in (" stage1 ", " #1 ", " #2 "))]
        assert len(early) == 12
        store.register(plan.key, early)
        search = tuner(plan, store)
        search.start()
        assert search.more(()) is None, "all that it asks for is done"
        assert store.trials(plan.key) == before
