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


def test_a_done_trial_without_results_is_found(filled: str) -> None:
    spoil(filled, "DELETE FROM result")
    (problem,) = check(filled)
    assert ids(plan(1))[0] in problem
    assert "no results" in problem


def test_a_config_that_was_changed_is_found(filled: str) -> None:
    victim = ids(plan(3))[2]
    spoil(filled, "UPDATE trial SET config = replace(config, '-1.5', '-1.0') WHERE id = :id", id=victim)
    (problem,) = check(filled)
    assert victim in problem


def test_a_config_that_is_no_json_is_found(filled: str) -> None:
    victim = ids(plan(3))[2]
    spoil(filled, "UPDATE trial SET config = '{' WHERE id = :id", id=victim)
    assert check(filled) == [f"The config of trial {victim} is no JSON."]


def test_a_spectrum_with_nan_is_found(filled: str) -> None:
    values = np.array([1.0, np.nan]).astype("<f8").tobytes()
    spoil(filled, "UPDATE spectrum SET singular_values = :values, length = 2", values=values)
    (problem,) = check(filled)
    assert "not finite" in problem


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
