"""`check` finds what is wrong with a store, `repair` puts it right, reads refuse it, the database
much by itself."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import pytest
from sqlalchemy import Table, create_engine
from sqlalchemy.exc import DBAPIError, IntegrityError

from orchestrator.store.checksums import rows_checksum
from orchestrator.store.integrity import check
from orchestrator.store.opening import open_store
from orchestrator.store.repair import repair
from orchestrator.store.schema import study_trial, trial
from orchestrator.store.store import Store
from tests.support.store_rows import (
    KEY,
    RUN,
    SPECTRUM,
    damage,
    epoch,
    everything,
    execute,
    ids,
    outcome,
    plan,
)
from trainables.errors import UserError

DONE, FAILED, PLANNED = ids(plan(3))


@pytest.fixture
def filled(store_url: str) -> str:
    """The address of a store with a done, a failed and a planned trial."""
    with open_store(store_url) as store:
        fill(store)
    return store_url


READERS: dict[str, Callable[[Store], object]] = {
    "results": lambda store: store.results(KEY),
    "trials": lambda store: store.trials(KEY),
    "epochs": lambda store: store.epochs_by_trial(KEY),
    "spectra": lambda store: store.spectra(KEY),
    "environments": lambda store: store.environments(KEY),
    "studies": lambda store: store.studies(),
}
CHANGES = {
    "UPDATE result SET metrics = replace(metrics, '402', '403')": "results",
    "UPDATE result SET metrics = '{' WHERE measurement = 'spectrum'": "results",
    "UPDATE result SET version = 2": "results",
    f"UPDATE result SET trial_id = '{FAILED}'": "results",
    "DELETE FROM result WHERE measurement = 'spectrum'": "results",
    "DELETE FROM result": "results",
    "UPDATE epoch SET valid_loss = 5.5 WHERE epoch = 2": "epochs",
    "DELETE FROM epoch WHERE epoch = 3": "epochs",
    f"UPDATE spectrum SET trial_id = '{FAILED}'": "spectra",
    "DELETE FROM spectrum": "spectra",
    "UPDATE trial SET environment = replace(environment, '2.13', '2.14')": "environments trials results",
    f"UPDATE trial SET cause = 'another' WHERE id = '{FAILED}'": "trials results environments",
    f"UPDATE trial SET state = 'done' WHERE id = '{FAILED}'": "trials results environments",
    f"UPDATE trial SET state = 'planned' WHERE id = '{DONE}'": "trials results environments",
    f"UPDATE trial SET config = replace(config, '-1.5', '-1.0') WHERE id = '{PLANNED}'": "trials results",
    f"UPDATE trial SET config = '{{' WHERE id = '{DONE}'": "trials results",
    "UPDATE study_trial SET name = 'trial 7' WHERE position = 0": "trials results studies",
    "DELETE FROM study_trial WHERE position = 1": "trials results studies",
    "DELETE FROM study_trial": "trials results studies",
    "UPDATE study SET scale = 'full'": "studies",
}
"""What a stranger could do, and the reads that refuse the store for it."""
STRANGE_VALUES = {
    "UPDATE trial SET cause = CAST(x'ff' AS TEXT)": "trials results environments",
    "UPDATE result SET metrics = x'ff'": "results",
    "UPDATE result SET version = 'one'": "results",
    "UPDATE epoch SET tokens = 'many' WHERE epoch = 1": "epochs",
    "UPDATE spectrum SET singular_values = 'abcdefgh', length = 1": "spectra",
    "UPDATE study SET planned_at = 'yesterday'": "studies",
    "UPDATE study SET overrides = CAST(x'c328' AS TEXT)": "studies",
    f"UPDATE trial SET lease_until = 'soon', owner = 'x', state = 'running' WHERE id = '{PLANNED}'": "trials results",
}
"""What SQLite lets stand in any column."""


def fill(store: Store) -> None:
    """Bring a store to a done, a failed and a planned trial, whatever it has of them already."""
    store.register(KEY, plan(3))
    run_id = store.begin_run(RUN)
    store.record(outcome(DONE), run_id=run_id, spectrum=SPECTRUM)
    store.fail(FAILED, cause="the worker died", run_id=run_id)


@pytest.mark.chaos(5, 20)
def test_what_was_changed_behind_its_back_is_refused_told_and_put_right(
    filled: str, rounds: int
) -> None:
    for statement in list(CHANGES)[:: len(CHANGES) // rounds]:
        check_damage(filled, statement, CHANGES[statement])


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_values_of_another_kind_are_refused_told_and_put_right(filled: str) -> None:
    for statement, refused in STRANGE_VALUES.items():
        check_damage(filled, statement, refused)


def check_damage(url: str, statement: str, refused: str) -> None:
    """The damage is refused by the reads that it hits and no other, found by the check, and gone
    after the repair."""
    with open_store(url) as store:
        expected = everything(store)
    assert check(url) == []
    assert repair(url) == []
    damage(url, statement)
    with open_store(url) as store:
        for name, read in READERS.items():
            with (
                pytest.raises(UserError, match="store check")
                if name in refused.split()
                else nullcontext()
            ):
                read(store)
    problems = check(url)
    assert problems
    assert all(problem.endswith(".") and "\n" not in problem for problem in problems)
    assert len(repair(url)) >= 1
    assert check(url) == []
    with open_store(url) as store:
        fill(store)
        assert everything(store) == expected
    assert check(url) == []


@pytest.mark.parametrize("call", [check, repair])
def test_tables_that_are_not_ours_are_not_put_right(
    filled: str, call: Callable[[str], object]
) -> None:
    execute(filled, "ALTER TABLE epoch RENAME COLUMN valid_loss TO valid_lost")
    with pytest.raises(UserError, match=r"its tables are .* put back a copy of it"):
        call(filled)
    with open_store(filled) as store, pytest.raises(UserError, match="its tables are"):
        store.epochs_by_trial(KEY)


def test_of_much_damage_the_first_is_named_and_the_rest_counted(filled: str) -> None:
    with open_store(filled) as store:
        store.record(outcome(PLANNED), run_id=1, spectrum=SPECTRUM)
    damage(filled, "UPDATE epoch SET tokens = 1")
    with (
        open_store(filled) as store,
        pytest.raises(
            UserError,
            match=f"trial {DONE[:12]} has changed since it was recorded .epochs., and so with 1 more",
        ),
    ):
        store.epochs_by_trial(KEY)


def test_damaged_results_are_not_passed_off_as_sound_by_a_later_measurement(filled: str) -> None:
    damage(filled, "UPDATE result SET metrics = replace(metrics, '402', '403')")
    with open_store(filled) as store:
        with pytest.raises(UserError, match="damaged"):
            store.add_measurement(DONE, "top@1", {"hits": 3}, run_id=1)
        with pytest.raises(UserError, match="damaged"):
            store.results(KEY)


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_nothing_is_written_beside_a_value_that_cannot_be_read(filled: str) -> None:
    with open_store(filled) as store:
        store.record_epochs(
            {PLANNED: [epoch(1)]}, attempts=store.claim([PLANNED], owner="a", lease_s=60)
        )
    damage(
        filled,
        "UPDATE result SET metrics = x'ff'",
        f"UPDATE epoch SET tokens = x'ff' WHERE trial_id = '{PLANNED}'",
    )
    with open_store(filled) as store:
        with pytest.raises(UserError, match="holds what this program never wrote"):
            store.add_measurement(DONE, "top@1", {"hits": 3}, run_id=1)
        with pytest.raises(UserError, match="holds what this program never wrote"):
            store.fail(PLANNED, cause="the worker died", run_id=1, attempt=1)
        assert store.trials(KEY)[2].state == "running"


def test_a_column_that_came_later_counts_where_it_holds_something() -> None:
    first = (1, 8000, 4.1, 4.0, False, 0.5, None, None)
    assert rows_checksum(DONE, [first]) == rows_checksum(DONE, [(*first, None)])
    assert (
        rows_checksum(DONE, [first])
        != rows_checksum(DONE, [(*first, 7)])
        != rows_checksum(DONE, [(*first, 8)])
    )
    assert rows_checksum(DONE, [first]) != rows_checksum(DONE, [first[:-1]]), (
        "columns of the first version all count"
    )


HUGE = "1" + "0" * 40
HOSTILE = [
    '{"test_perplexity": "low"}',
    '{"seed": 1}',
    f'{{"x": {HUGE}}}',
    '{"x": NaN}',
    '{"x": {"y": 1}}',
    "[1]",
]


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("metrics", HOSTILE)
def test_metrics_that_no_program_recorded_are_refused_told_and_put_right_whatever_their_checksum(
    filled: str, metrics: str
) -> None:
    rows = [("perplexity", 1, metrics)]
    damage(
        filled,
        f"DELETE FROM result WHERE trial_id = '{DONE}' AND measurement = 'spectrum'",
        "UPDATE result SET metrics = :metrics",
        f"UPDATE trial SET results_checksum = :checksum WHERE id = '{DONE}'",
        metrics=metrics,
        checksum=rows_checksum(DONE, rows),
    )
    with open_store(filled) as store:
        with pytest.raises(UserError, match="holds what this program never wrote"):
            store.results(KEY)
        with pytest.raises(UserError, match="holds what this program never wrote"):
            store.add_measurement(DONE, "top@1", {"hits": 3}, run_id=1)
    assert len(check(filled)) == 1
    repair(filled)
    assert check(filled) == []
    with open_store(filled) as store:
        assert [row["state"] for row in store.results(KEY)] == ["planned", "failed", "planned"]


DONE_ROWS = [
    "UPDATE trial SET state = 'planned' WHERE id = :id",
    "UPDATE trial SET attempt = 9 WHERE id = :id",
    "UPDATE trial SET environment = '{}' WHERE id = :id",
    "UPDATE trial SET config = replace(config, '1', '2') WHERE id = :id",
    "UPDATE trial SET checksum = NULL WHERE id = :id",
    "DELETE FROM trial WHERE id = :id",
    "UPDATE result SET metrics = replace(metrics, '402', '403') WHERE trial_id = :id",
    "DELETE FROM result WHERE trial_id = :id",
    "UPDATE epoch SET valid_loss = 1 WHERE trial_id = :id",
    "DELETE FROM epoch WHERE trial_id = :id",
    "INSERT INTO epoch VALUES (:id, 9, 1, 1, 1, true, 1, NULL, NULL, NULL)",
    "UPDATE spectrum SET length = length WHERE trial_id = :id",
    "DELETE FROM spectrum WHERE trial_id = :id",
]


def test_the_database_itself_refuses_to_change_a_done_trial(filled: str) -> None:
    for statement in DONE_ROWS:
        with pytest.raises(DBAPIError, match="a done trial never changes"):
            execute(filled, statement, id=DONE)
    assert check(filled) == []


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("table", ["trial", "result", "epoch", "spectrum"])
def test_the_rows_of_a_done_trial_cannot_be_replaced(filled: str, table: str) -> None:
    key = "id" if table == "trial" else "trial_id"
    with pytest.raises(DBAPIError, match="a done trial never changes"):
        execute(
            filled,
            f"INSERT OR REPLACE INTO {table} SELECT * FROM {table} WHERE {key} = :id",
            id=DONE,
        )


@pytest.mark.parametrize("store_url", ["postgresql"], indirect=True)
def test_tables_of_done_trials_cannot_be_emptied(filled: str) -> None:
    with pytest.raises(DBAPIError, match="a done trial never changes"):
        execute(filled, "TRUNCATE trial CASCADE")


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_cut_spectrum_and_a_dangling_reference_which_postgresql_refuses_are_told_and_put_right(
    filled: str,
) -> None:
    damage(filled, "UPDATE epoch SET trial_id = :id", id="f" * 64)
    damage(
        filled,
        "PRAGMA ignore_check_constraints = ON",
        "UPDATE spectrum SET singular_values = x'00'",
    )
    cut, *problems = check(filled)
    assert "spectrum" in cut
    assert sum("epoch" in problem and "trial" in problem for problem in problems) == 3
    repair(filled)
    assert check(filled) == []


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
