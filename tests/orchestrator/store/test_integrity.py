"""`check` finds what is wrong with a store, and nothing wrong with a sound one; the database refuses much by itself."""

from __future__ import annotations

import numpy as np
import pytest
from sqlalchemy import Table, create_engine
from sqlalchemy.exc import IntegrityError

from orchestrator.store.integrity import check
from orchestrator.store.opening import open_store
from orchestrator.store.schema import study_trial, trial
from tests.support.store_rows import KEY, RUN, SPECTRUM, execute, ids, outcome, plan

DONE, FAILED, PLANNED = ids(plan(3))
NAN = np.array([1.0, np.nan]).astype("<f8").tobytes()


@pytest.fixture
def filled(store_url: str) -> str:
    """The address of a store with a done, a failed and a planned trial."""
    with open_store(store_url) as store:
        store.register(KEY, plan(3))
        run_id = store.begin_run(RUN)
        store.record(outcome(DONE), run_id=run_id, spectrum=SPECTRUM)
        store.fail(FAILED, cause="the worker died", run_id=run_id)
    return store_url


@pytest.mark.parametrize(
    ("statement", "values", "problem"),
    [
        ("DELETE FROM result", {}, f"Trial {DONE} is done but has no results."),
        ("UPDATE trial SET config = replace(config, '-1.5', '-1.0') WHERE id = :id", {"id": PLANNED}, PLANNED),
        ("UPDATE trial SET config = '{' WHERE id = :id", {"id": PLANNED}, f"The config of trial {PLANNED} is no JSON."),
        (
            "UPDATE spectrum SET singular_values = :values, length = 2",
            {"values": NAN},
            f"{DONE} has values that are not",
        ),
    ],
)
def test_what_was_changed_behind_its_back_is_told(
    filled: str, statement: str, values: dict[str, object], problem: str
) -> None:
    assert check(filled) == []
    execute(filled, statement, **values)
    (sentence,) = check(filled)
    assert problem in sentence


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_cut_spectrum_and_a_dangling_reference_which_postgresql_refuses_are_told(filled: str) -> None:
    execute(filled, "UPDATE epoch SET trial_id = :id", id="f" * 64)
    execute(filled, "PRAGMA ignore_check_constraints = ON", "UPDATE spectrum SET singular_values = x'00'")
    cut, *dangling = check(filled)
    assert "spectrum" in cut
    assert len(dangling) == 3
    assert all("epoch" in problem and "trial" in problem for problem in dangling)


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
def test_the_database_itself_refuses_what_makes_no_sense(
    store_url: str, table: Table, change: dict[str, object]
) -> None:
    with open_store(store_url) as store:
        store.register(KEY, plan(1))
    engine = create_engine(store_url)
    with pytest.raises(IntegrityError), engine.begin() as connection:
        if store_url.startswith("sqlite"):
            connection.exec_driver_sql("PRAGMA foreign_keys = ON")
        connection.execute(table.update().values(change))
    engine.dispose()
