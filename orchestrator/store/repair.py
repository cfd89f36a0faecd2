"""Damage put right where nothing is lost by it: what is sound stays, what is damaged is planned
again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Text,
    TextClause,
    and_,
    case,
    delete,
    func,
    insert,
    not_,
    or_,
    select,
    text,
    update,
)

from orchestrator.store.database import Database, now
from orchestrator.store.integrity import (
    damaged_studies,
    damaged_trials,
    dangling,
    has_config,
    ids_of_trials,
    is_about_a_row,
    nameless_trials,
    sqlite_findings,
    unreadable_attempts,
    unreadable_moments,
)
from orchestrator.store.opening import open_database
from orchestrator.store.records import StudyKey
from orchestrator.store.schema import (
    UtcDateTime,
    attempt,
    epoch,
    metadata,
    result,
    run,
    spectrum,
    stop_request,
    study,
    study_trial,
    trial,
)
from orchestrator.store.triggers import drop_triggers, make_triggers
from orchestrator.store.troubles import AFRESH, NEVER_WRITTEN
from trainables.errors import UserError, first_line

_IDLE = case((trial.c.state == "running", "planned"), else_=trial.c.state)
_FREE = {"owner": None, "lease_until": None, "state": _IDLE}


def repair(url: str) -> list[str]:
    """Put the store at `url` right; returns a sentence for each damage that there was.

    A damaged trial is planned again: the next run of its study records its result file where that
    still lies in the storage, and trains it again where not. A trial without its config or id, and
    a study without its members, are forgotten until they are planned again. What no result hangs on
    (moments, who ran a trial, in which run) is replaced by what is known. Raises UserError where
    the pages of the file themselves are damaged; the store stays as it was then."""
    with closing(open_database(url, create=False)) as database:
        return _put_right(database, ids_of_trials, lambda _: False)


def repair_for(url: str, key: StudyKey, trial_ids: Collection[str]) -> list[str]:
    """The same of what a run of this study reads: these trials, those that the store has of the
    study, all lists of trials; any other trial stays as it is. Nothing is written where all of it
    is sound."""

    def concerned(connection: Connection) -> Collection[str]:
        return dict.fromkeys([*trial_ids, *ids_of_trials(connection, key)])

    with closing(open_database(url, create=False)) as database:
        with database.read() as connection:
            if not damaged_trials(connection, concerned(connection)) and not damaged_studies(
                connection
            ):
                return []
        # Rows of others may break the rules of the tables still.
        return _put_right(database, concerned, is_about_a_row)


def _hopeless(address: str, problem: str) -> str:
    return f"The results store {address} cannot be put right ({problem}): {AFRESH}."


def _put_right(
    database: Database,
    concerned: Callable[[Connection], Collection[str]],
    stays: Callable[[str], bool],
) -> list[str]:
    """Put right, of trials, those that `concerned` gives; a finding of SQLite that is left must be
    one that `stays`."""
    with database.write() as connection:
        try:
            sentences = _repair(connection, concerned)
        except NEVER_WRITTEN as error:
            raise UserError(_hopeless(database.address, first_line(error))) from error
        if findings := [finding for finding in sqlite_findings(connection) if not stays(finding)]:
            raise UserError(_hopeless(database.address, findings[0]))
        return sentences


def _repair(
    connection: Connection, concerned: Callable[[Connection], Collection[str]]
) -> list[str]:
    drop_triggers(connection)
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
        connection.exec_driver_sql(
            "PRAGMA ignore_check_constraints = ON"
        )  # a row may break several until all is done
    sentences = [
        *_index_again(connection),
        *_fill_in(connection),
        *_replace_moments(connection),
        *_free(connection),
        *_fix_numbers(connection),
    ]
    sentences += [
        *_forget_nameless(connection),
        *_forget_attempts(connection),
        *_fix_references(connection),
    ]
    for trial_id, damage in damaged_trials(connection, concerned(connection)).items():
        planned = has_config(connection, trial_id)
        _plan_again(connection, trial_id, has_config=planned)
        cure = (
            "it is planned again" if planned else "it is forgotten until its study is planned again"
        )
        sentences.append(f"{damage.rstrip('.')}: {cure}.")
    for study_id, damage in damaged_studies(connection).items():
        for table in (stop_request, study_trial):
            connection.execute(delete(table).where(table.c.study_id == study_id))
        connection.execute(delete(study).where(study.c.id == study_id))
        sentences.append(f"{damage.rstrip('.')}: the next run of it plans it again.")
    make_triggers(connection)
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA ignore_check_constraints = OFF")
    return sentences


def _index_again(connection: Connection) -> Iterator[str]:
    if not all(map(is_about_a_row, sqlite_findings(connection))):
        connection.exec_driver_sql("REINDEX")
        yield "Indices do not fit their tables: they are made again."


def _replace_moments(connection: Connection) -> Iterator[str]:
    """Those that cannot be read: by the present one, or by none where there need be none."""
    for table, column, row in list(unreadable_moments(connection)):
        values = {column.name: None if column.nullable else now(connection)}
        connection.execute(
            update(table)
            .where(_is_row(row))
            .values(_FREE if column is trial.c.lease_until else values)
        )
        yield f"{column.name} in row {row} of the table {table.name} cannot be read: it is replaced."


def _is_row(row: int) -> TextClause:
    return text("rowid = :row").bindparams(row=row)


def _free(connection: Connection) -> Iterator[str]:
    """Take the owners from trials that nobody runs; a trial that runs without one is planned."""
    is_running = trial.c.state == "running"
    is_owned = or_(trial.c.owner.is_not(None), trial.c.lease_until.is_not(None))
    is_unowned = or_(trial.c.owner.is_(None), trial.c.lease_until.is_(None))
    wrong = or_(and_(not_(is_running), is_owned), and_(is_running, is_unowned))
    if trials := connection.execute(update(trial).where(wrong).values(_FREE)).rowcount:
        yield f"The owner or the lease of {trials} trials does not go with their state: it is cleared."


def _fix_numbers(connection: Connection) -> Iterator[str]:
    """Those that no result hangs on, and requests to stop that ask for nothing."""
    wrong = trial.c.attempt < 0
    if connection.dialect.name == "sqlite":
        wrong = or_(wrong, func.typeof(trial.c.attempt) != "integer")
    if trials := connection.execute(update(trial).where(wrong).values(attempt=0)).rowcount:
        yield f"The attempts of {trials} trials are no counts: they are counted from 0."
    size = func.length(spectrum.c.singular_values)
    right_length = update(spectrum).where(size != 8 * spectrum.c.length).values(length=size // 8)
    if spectra := connection.execute(right_length).rowcount:
        yield f"The lengths of {spectra} spectra are not those of their values: they are counted again."
    is_idle = stop_request.c.study_id.is_(None) == stop_request.c.trial_id.is_(None)
    if requests := connection.execute(delete(stop_request).where(is_idle)).rowcount:
        yield f"{requests} requests to stop name no study and no trial, or both: they are removed."


def _fill_in(connection: Connection) -> Iterator[str]:
    """What is missing where nothing may be, and no result hangs on it; a row that does not say
    whose it is goes.

    (SQLite takes `IS NULL` for false where a column may have no NULL.)
    """
    for table in metadata.sorted_tables if connection.dialect.name == "sqlite" else ():
        for column in table.c:
            missing = func.typeof(column) == "null"
            if (
                column.nullable
                or not connection.execute(select(func.count()).where(missing)).scalar_one()
            ):
                continue
            if column.name in ("trial_id", "study_id") or table is attempt:
                connection.execute(delete(table).where(missing))
                yield f"A row of the table {table.name} does not say its {column.name}: it is removed."
            elif (value := _stand_in_for(column, connection)) is not None:
                connection.execute(update(table).where(missing).values({column.name: value}))
                yield f"A row of the table {table.name} does not say its {column.name}: it is filled in."


def _stand_in_for(column: Column[Any], connection: Connection) -> Any:
    """What may stand there; None where a checksum tells what becomes of the row."""
    if isinstance(column.type, UtcDateTime):
        return now(connection)
    if column is result.c.run_id:
        return _insert_stand_in(connection)
    if column is spectrum.c.length:
        return func.length(spectrum.c.singular_values) / 8
    if column.table is run and isinstance(column.type, Text):
        return "{}" if column is run.c.packages else "lost"
    return None


def _forget_nameless(connection: Connection) -> Iterator[str]:
    for row in nameless_trials(connection):
        connection.execute(delete(trial).where(_is_row(row)))
        yield f"Row {row} of the table trial has no trial's id: it is forgotten until its study is planned again."


def _forget_attempts(connection: Connection) -> Iterator[str]:
    for row in unreadable_attempts(connection):
        connection.execute(delete(attempt).where(_is_row(row)))
        yield f"Row {row} of the table attempt holds what this program never wrote: it is removed."


def _fix_references(connection: Connection) -> Iterator[str]:
    """Of what came from a lost run to a stand-in; a row that refers to anything else that is lost
    goes with it."""
    stand_in = None
    for name, row, parent, _ in dangling(connection):
        if parent == "run":
            stand_in = stand_in or _insert_stand_in(connection)
            connection.exec_driver_sql(
                f'UPDATE "{name}" SET run_id = ? WHERE rowid = ?', (stand_in, row)
            )
            yield f"Row {row} of the table {name} came from a run that is lost: a stand-in takes its place."
        else:
            connection.exec_driver_sql(f'DELETE FROM "{name}" WHERE rowid = ?', (row,))
            yield f"A row of the table {name} that refers to nothing is removed."


def _insert_stand_in(connection: Connection) -> int:
    names = ("code_version", "host", "device", "corpus_sha256")
    row = {**dict.fromkeys(names, "lost"), "packages": "{}", "started_at": now(connection)}
    return int(connection.execute(insert(run).values(row).returning(run.c.id)).scalar_one())


def _plan_again(connection: Connection, trial_id: str, *, has_config: bool) -> None:
    for table in (result, epoch, spectrum):
        connection.execute(delete(table).where(table.c.trial_id == trial_id))
    if has_config:
        kept = {"id", "attempt", "planned_at", "started_at", "config"}
        cleared = {column.name: None for column in trial.c if column.name not in kept}
        connection.execute(
            update(trial).where(trial.c.id == trial_id).values({**cleared, "state": "planned"})
        )
    else:
        for table in (stop_request, attempt, study_trial):
            connection.execute(delete(table).where(table.c.trial_id == trial_id))
        connection.execute(delete(trial).where(trial.c.id == trial_id))
