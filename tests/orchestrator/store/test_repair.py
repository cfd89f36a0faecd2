"""What `repair` keeps: of a SQLite store, where only what no result hangs on is damaged, every
result."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from orchestrator.command.app import main
from orchestrator.store.integrity import check
from orchestrator.store.opening import open_store
from orchestrator.store.records import StudyKey
from orchestrator.store.repair import repair, repair_for
from orchestrator.store.schema import metadata
from orchestrator.store.store import Store
from tests.support.store_rows import (
    KEY,
    RUN,
    SPECTRUM,
    damage,
    epoch,
    everything,
    ids,
    outcome,
    plan,
)

DONE, FAILED, PLANNED, RUNNING = ids(plan(4))
STRANGE = ("'soon'", "x'ff'", "CAST(x'ff' AS TEXT)")
ANYTHING = "PRAGMA ignore_check_constraints = ON"


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The address of a store with a trial in every state that matters."""
    address = f"sqlite:///{tmp_path / 'results.db'}"
    with open_store(address) as store:
        fill(store)
        store.record_epochs(
            {RUNNING: [epoch(1)]}, attempts=store.claim([RUNNING], owner="a driver", lease_s=600)
        )
    return address


def fill(store: Store) -> None:
    store.register(KEY, plan(4))
    run_id = store.begin_run(RUN)
    store.claim([DONE], owner="a driver", lease_s=600)
    store.record(outcome(DONE), run_id=run_id, spectrum=SPECTRUM)
    store.fail(FAILED, cause="the worker died", run_id=run_id)


@contextmanager
def put_right(url: str, *statements: str) -> Iterator[list[str]]:
    """Damage that the check tells; then what the repair says."""
    damage(url, *statements)
    assert check(url)
    sentences = repair(url)
    assert check(url) == []
    yield sentences


def state_of(url: str) -> dict[str, object]:
    with open_store(url) as store:
        return everything(store)


@pytest.mark.parametrize("value", STRANGE)
def test_a_moment_that_cannot_be_read_costs_nothing(url: str, value: str) -> None:
    before = state_of(url)
    moments = ", ".join(
        f"{column} = {value}" for column in ("planned_at", "started_at", "ended_at")
    )
    with put_right(
        url, f"UPDATE trial SET {moments}", f"UPDATE study SET planned_at = {value}"
    ) as sentences:
        assert len(sentences) == 4 * 3 + 1
        assert all("cannot be read" in sentence for sentence in sentences)
    assert state_of(url) == before


@pytest.mark.parametrize("value", STRANGE)
def test_an_owner_or_a_lease_of_a_trial_that_does_not_run_costs_nothing(
    url: str, value: str
) -> None:
    before = state_of(url)
    for column in ("owner", "lease_until"):
        with put_right(
            url, ANYTHING, f"UPDATE trial SET {column} = {value} WHERE state <> 'running'"
        ):
            assert state_of(url) == before


@pytest.mark.parametrize("change", ["lease_until = 'soon'", "lease_until = NULL", "owner = NULL"])
def test_a_trial_that_runs_with_nobody_is_planned_and_keeps_its_epochs(
    url: str, change: str
) -> None:
    with (
        put_right(url, ANYTHING, f"UPDATE trial SET {change} WHERE id = '{RUNNING}'"),
        open_store(url) as store,
    ):
        row = store.trials(KEY)[3]
        assert (row.state, row.owner, row.lease_until, row.attempt) == ("planned", None, None, 1)
        assert store.epochs(RUNNING) == [epoch(1)]


def test_a_row_with_several_damages_is_put_right(url: str) -> None:
    damages = "planned_at = 'soon', owner = 'x', state = 'finished'"
    with (
        put_right(url, ANYTHING, f"UPDATE trial SET {damages} WHERE id = '{DONE}'"),
        open_store(url) as store,
    ):
        assert [row.state for row in store.trials(KEY)] == [
            "planned",
            "failed",
            "planned",
            "running",
        ]


@pytest.mark.parametrize("value", ["-9223372036854775807", "'x'", "1.5"])
def test_an_attempt_that_is_no_count_costs_at_most_its_trial(url: str, value: str) -> None:
    change = f"UPDATE trial SET attempt = {value} WHERE id IN"
    with (
        put_right(url, ANYTHING, f"{change} ('{DONE}', '{PLANNED}', '{RUNNING}')"),
        open_store(url) as store,
    ):
        states = {row.trial_id: (row.state, row.attempt) for row in store.trials(KEY)}
        assert states == {
            DONE: ("planned", 0),
            FAILED: ("failed", 0),
            PLANNED: ("planned", 0),
            RUNNING: ("running", 0),
        }
        assert store.epochs(RUNNING) == [epoch(1)]


@pytest.mark.parametrize("trial_id", [DONE, PLANNED])
def test_before_a_run_an_attempt_that_is_no_count_is_put_right_whosever_it_is(
    url: str, trial_id: str
) -> None:
    damage(url, ANYTHING, f"UPDATE trial SET attempt = -7 WHERE id IN ('{trial_id}', '{RUNNING}')")
    assert repair_for(url, StudyKey(study="other", scale="quick", corpus="pydocs"), [trial_id])
    with open_store(url) as store:
        assert store.claim([trial_id], owner="a driver", lease_s=600) == {trial_id: 1}


@pytest.mark.parametrize("column", ["train_loss", "epoch", "press_rank"])
def test_damaged_epochs_of_a_trial_that_runs_are_told_and_the_trial_is_planned_again(
    url: str, column: str
) -> None:
    with (
        put_right(url, f"UPDATE epoch SET {column} = 'abc' WHERE trial_id = '{RUNNING}'"),
        open_store(url) as store,
    ):
        assert [row.state for row in store.trials(KEY)] == ["done", "failed", "planned", "planned"]
        assert list(store.epochs_by_trial(KEY)) == [DONE]


@pytest.mark.parametrize("ids", ["NULL, NULL", "1, (SELECT min(id) FROM trial)"])
def test_a_request_to_stop_that_asks_for_nothing_or_two_things_costs_nothing(
    url: str, ids: str
) -> None:
    before = state_of(url)
    change = f"INSERT INTO stop_request (study_id, trial_id, asked_at) SELECT {ids}, '2026-01-01 00:00:00'"
    with put_right(url, ANYTHING, change) as sentences:
        assert sentences == [
            "1 requests to stop name no study and no trial, or both: they are removed."
        ]
    assert state_of(url) == before


def test_a_length_that_is_not_that_of_its_spectrum_costs_nothing(url: str) -> None:
    before = state_of(url)
    with put_right(url, ANYTHING, "UPDATE spectrum SET length = 4") as sentences:
        assert len(sentences) == 1
    assert state_of(url) == before


@pytest.mark.parametrize(
    "change", ["DELETE FROM run", "UPDATE trial SET run_id = 'x'", "UPDATE result SET run_id = 9"]
)
def test_a_lost_run_costs_no_result(url: str, change: str) -> None:
    before = state_of(url)
    with put_right(url, change) as sentences:
        assert all("a run that is lost" in sentence for sentence in sentences)
    assert state_of(url) == before


@pytest.mark.parametrize(
    "value", ["CAST(id AS BLOB)", "x'ff'", "CAST(x'ff' AS TEXT)", "'x'", "upper(id)"]
)
def test_a_trial_whose_id_is_none_is_forgotten_until_it_is_planned_again(
    url: str, value: str
) -> None:
    before = state_of(url)
    with put_right(url, f"UPDATE trial SET id = {value} WHERE id = '{DONE}'") as sentences:
        assert "has no trial's id: it is forgotten" in sentences[0]
    with open_store(url) as store:
        fill(store)
    assert state_of(url) == before


def test_for_a_run_what_it_reads_is_put_right_and_other_trials_stay_as_they_are(
    store_url: str,
) -> None:
    other = StudyKey(study="other", scale="quick", corpus="pydocs")
    with open_store(store_url) as store:
        store.register(KEY, plan(1))
        store.register(other, plan(3))
        for trial_id in (DONE, FAILED, PLANNED):
            store.record(outcome(trial_id), run_id=store.begin_run(RUN), spectrum=SPECTRUM)
        before = everything(store)
    assert repair_for(store_url, KEY, [DONE, FAILED]) == []
    damage(store_url, "UPDATE result SET metrics = replace(metrics, '402', '403')")
    told = check(store_url)
    sentences = repair_for(store_url, KEY, [FAILED])
    assert sorted(sentence.split()[1] for sentence in sentences) == sorted([DONE, FAILED])
    assert check(store_url) == [sentence for sentence in told if PLANNED in sentence] != []
    with open_store(store_url) as store:
        assert list(store.states(ids(plan(3))).values()).count("planned") == 2
        store.record(outcome(DONE), run_id=store.begin_run(RUN), spectrum=SPECTRUM)
        assert everything(store) == before


def test_what_a_trial_without_its_config_comes_to_is_said_as_it_is(url: str) -> None:
    change = "UPDATE trial SET config = '{' WHERE id = "
    with put_right(
        url, f"{change}'{DONE}'", f"UPDATE trial SET attempt = 9 WHERE id = '{FAILED}'"
    ) as sentences:
        [forgotten] = [sentence for sentence in sentences if DONE in sentence]
        [planned] = [sentence for sentence in sentences if FAILED in sentence]
        assert forgotten.endswith("(config): it is forgotten until its study is planned again.")
        assert planned.endswith("(end): it is planned again.")


@pytest.mark.parametrize("call", [check, repair, lambda url: repair_for(url, KEY, [DONE])])
def test_lack_of_memory_is_no_damage(
    url: str, monkeypatch: pytest.MonkeyPatch, call: Callable[[str], list[str]]
) -> None:
    before = state_of(url)

    def lack(_values: object) -> str:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr("orchestrator.store.checksums._checksum", lack)
        with pytest.raises(MemoryError):
            call(url)
    assert state_of(url) == before


@pytest.mark.parametrize(
    ("column", "value"), [("state", "'dnoe'"), ("state", "NULL"), ("config", "NULL")]
)
def test_a_run_puts_its_study_right_beside_another_whose_rows_break_the_rules(
    url: str, column: str, value: str
) -> None:
    """Which stay for the run of that one, or for `store check --repair`."""
    other = StudyKey(study="other", scale="quick", corpus="pydocs")
    (strange,) = ids(plan(1, group="other"))
    with open_store(url) as store:
        store.register(other, plan(1, group="other"))
    with without_rule(url, "trial", column):
        damage(url, ANYTHING, f"UPDATE trial SET {column} = {value} WHERE id = '{strange}'")
    damage(url, f"UPDATE result SET metrics = replace(metrics, '1', '2') WHERE trial_id = '{DONE}'")
    (sentence,) = repair_for(url, KEY, ids(plan(4)))
    assert DONE in sentence and "it is planned again" in sentence
    left = check(url)
    assert left and not any(DONE in problem for problem in left)
    assert strange in repair_for(url, other, [strange])[0]
    assert check(url) == []


def test_indices_that_do_not_fit_their_tables_are_made_again(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before, swapped = (
        state_of(url),
        ("sqlite_autoindex_study_trial_1", "sqlite_autoindex_study_trial_2"),
    )
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        root = dict(connection.execute("SELECT name, rootpage FROM sqlite_master").fetchall())
        for name, other in (swapped, swapped[::-1]):
            connection.execute(
                "UPDATE sqlite_master SET rootpage = ? WHERE name = ?", (root[other], name)
            )
        connection.commit()
    assert main(["store", "check", "--store", url]) == 1
    told = capsys.readouterr().out
    assert (
        "missing from index" in told
        and "with --repair, which can put indices right; if it is more than" in told
    )
    assert repair(url) == ["Indices do not fit their tables: they are made again."]
    assert check(url) == []
    assert state_of(url) == before


MISSING = [
    (table.name, column.name)
    for table in metadata.sorted_tables
    for column in table.c
    if not (
        column.nullable
        or (table.name, column.name) in (("run", "id"), ("study", "id"), ("stop_request", "id"))
    )
]
COSTS_NOTHING = {
    *(
        ("run", name)
        for name in ("code_version", "packages", "host", "device", "corpus_sha256", "started_at")
    ),
    *(("trial", "planned_at"), ("result", "recorded_at"), ("result", "run_id")),
    *(("study", "planned_at"), ("spectrum", "length")),
}


@pytest.mark.parametrize(("table", "column"), MISSING)
def test_what_is_missing_is_filled_in_or_costs_its_row(url: str, table: str, column: str) -> None:
    """Whatever it is, the store is sound afterwards, and nothing is lost where no result hangs on
    it."""
    if table == "stop_request":
        with open_store(url) as store:
            store.ask_to_stop(KEY)
    before = state_of(url)
    with without_rule(url, table, column):
        damage(url, ANYTHING, f"UPDATE {table} SET {column} = NULL")
    if check(url):
        assert repair(url)
    assert check(url) == []
    if (table, column) in COSTS_NOTHING:
        assert state_of(url) == before


@contextmanager
def without_rule(url: str, table: str, column: str) -> Iterator[None]:
    """Meanwhile a value may be missing there, as it is once a bit of the file has changed."""

    def change(old: str, new: str) -> None:
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            connection.execute("PRAGMA writable_schema = ON")
            text = "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE name = ?"
            connection.execute(text, (old, new, table))
            connection.commit()

    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        (sql,) = connection.execute(
            "SELECT sql FROM sqlite_master WHERE name = ?", (table,)
        ).fetchone()
    (rule,) = re.findall(rf"\b{column} [A-Z()0-9]+ NOT NULL", sql)
    change(rule, rule.removesuffix(" NOT NULL"))
    yield
    change(rule.removesuffix(" NOT NULL") + ",", rule + ",")
