"""`check` finds what is wrong with a store, and nothing wrong with a sound one."""

from __future__ import annotations

import numpy as np
import pytest
from sqlalchemy import create_engine, text

from orchestrator.store.integrity import check
from orchestrator.store.opening import open_store
from tests.support.store_rows import KEY, RUN, SPECTRUM, ids, outcome, plan
from trainables.errors import UserError


@pytest.fixture
def filled(store_url: str) -> str:
    """The address of a store with a done, a failed and a planned trial."""
    trials = plan(3)
    with open_store(store_url) as store:
        store.register(KEY, trials)
        run_id = store.begin_run(RUN)
        store.record(outcome(ids(trials)[0]), run_id=run_id, spectrum=SPECTRUM)
        store.fail(ids(trials)[1], cause="the worker died", run_id=run_id)
    return store_url


def spoil(url: str, statement: str, **values: object) -> None:
    """Change a database behind the store's back; SQLite does not look at references unless told to."""
    engine = create_engine(url)
    with engine.begin() as connection:
        assert connection.execute(text(statement), values).rowcount > 0
    engine.dispose()


def test_a_sound_store_has_no_problems(filled: str) -> None:
    assert check(filled) == []


DONE, _, PLANNED = ids(plan(3))
NAN = np.array([1.0, np.nan]).astype("<f8").tobytes()


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
    spoil(filled, statement, **values)
    (sentence,) = check(filled)
    assert problem in sentence


def test_a_spectrum_that_was_cut_is_found(filled: str) -> None:
    if filled.startswith("postgresql"):
        pytest.skip("PostgreSQL refuses it")
    engine = create_engine(filled)
    with engine.begin() as connection:
        connection.execute(text("PRAGMA ignore_check_constraints = ON"))
        connection.execute(text("UPDATE spectrum SET singular_values = x'00'"))
    engine.dispose()
    (problem,) = check(filled)
    assert "spectrum" in problem


def test_a_dangling_reference_is_found(filled: str) -> None:
    if filled.startswith("postgresql"):
        pytest.skip("PostgreSQL refuses it")
    spoil(filled, "UPDATE epoch SET trial_id = :id", id="f" * 64)
    problems = check(filled)
    assert len(problems) == 3
    assert all("epoch" in problem and "trial" in problem for problem in problems)


def test_checking_a_store_that_does_not_exist_makes_none(url: str) -> None:
    with pytest.raises(UserError, match="run a study first"):
        check(url)
