"""Is a store sound? The database's own checks, and what this program promises beyond them."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

from sqlalchemy import Column, Connection, Row, Select, Table, and_, select, text
from sqlalchemy.exc import OperationalError

from orchestrator.store.checksums import (
    END,
    EPOCH,
    MEMBER,
    STUDY,
    by_first_column,
    end_is_wrong,
    is_config_of,
    part_checksums,
    study_checksum,
)
from orchestrator.store.database import chunks
from orchestrator.store.opening import open_database
from orchestrator.store.records import OPEN, StudyKey, metrics_of
from orchestrator.store.results import epoch_metrics
from orchestrator.store.schema import UtcDateTime, attempt, result, study, study_trial, trial
from orchestrator.store.studies import select_members
from orchestrator.store.troubles import NEVER_WRITTEN, code_of
from trainables.errors import first_line

ROW_IS_WRONG, PAGES_DAMAGED = "A row breaks a rule of its table: ", "SQLite finds damage: "
CHECKED_AT_ONCE = 500
"""Trials; their spectra lie in memory meanwhile."""
_NAMELESS = "typeof(id) <> 'text' OR length(id) <> 64 OR id GLOB '*[^0-9a-f]*'"


def check(url: str) -> list[str]:
    """Every problem found in the store at `url`, one sentence each; empty for a sound one.

    Looks for: damaged pages, broken rules of the tables and dangling references (SQLite; PostgreSQL
    guards its own), trials and studies that are not what their checksums say, values that no
    version of this program writes, and done trials without results. Raises UserError where the
    store cannot be opened or read at all."""
    with closing(open_database(url, create=False)) as database, database.read() as connection:
        findings = sqlite_findings(connection)
        sentences = [
            f"{ROW_IS_WRONG if is_about_a_row(finding) else PAGES_DAMAGED}{finding}."
            for finding in findings
        ]
        if not all(map(is_about_a_row, findings)):
            return sentences  # nothing read from damaged pages says anything about the rest
        for table, row, parent, _ in dangling(connection):
            sentences.append(
                f"Row {row} of the table {table} refers to a row of {parent} that does not exist."
            )
        for row in nameless_trials(connection):
            sentences.append(f"Row {row} of the table trial has no trial's id.")
        for row in unreadable_attempts(connection):
            sentences.append(f"Row {row} of the table attempt holds what this program never wrote.")
        return [
            *sentences,
            *damaged_trials(connection, ids_of_trials(connection)).values(),
            *damaged_studies(connection).values(),
        ]


def sqlite_findings(connection: Connection) -> list[str]:
    """What SQLite itself finds wrong with its pages, indices and rules."""
    if connection.dialect.name != "sqlite":
        return []
    findings = connection.exec_driver_sql("PRAGMA integrity_check").scalars()
    return [str(finding) for finding in findings if finding != "ok"]


def is_about_a_row(finding: str) -> bool:
    """Whether SQLite finds a row that breaks a rule of its table, and not damage of pages or
    indices."""
    return finding.startswith(("CHECK constraint", "NULL value in"))


def dangling(connection: Connection) -> list[tuple[str, int, str, int]]:
    """Table, row, parent table and key of references to rows that do not exist."""
    if connection.dialect.name != "sqlite":
        return []
    return [tuple(row) for row in connection.exec_driver_sql("PRAGMA foreign_key_check")]


def nameless_trials(connection: Connection) -> list[int]:
    """Rows of trials whose ids are no SHA-256 sums in text, which SQLite lets stand."""
    if connection.dialect.name != "sqlite":
        return []
    return list(connection.exec_driver_sql(f"SELECT rowid FROM trial WHERE {_NAMELESS}").scalars())


def unreadable_moments(connection: Connection) -> Iterator[tuple[Table, Column[Any], int]]:
    """Table, column and row of what is no moment, of trials and studies; SQLite lets it stand."""
    for table in (trial, study) if connection.dialect.name == "sqlite" else ():
        for column in table.c:
            if isinstance(column.type, UtcDateTime):
                yield from ((table, column, row) for row in _unreadable_rows(connection, column))


def unreadable_attempts(connection: Connection) -> list[int]:
    """Rows of attempts with a value that no program wrote; SQLite lets it stand."""
    if connection.dialect.name != "sqlite":
        return []
    no_text = "SELECT rowid FROM attempt WHERE typeof(place) <> 'text' OR typeof(cause) NOT IN ('text', 'null')"
    rows = set(connection.exec_driver_sql(no_text).scalars())
    return sorted(rows.union(*(_unreadable_rows(connection, column) for column in attempt.c)))


def _unreadable_rows(connection: Connection, column: Column[Any]) -> list[int]:
    """Those in which this column holds what cannot be read as its type."""
    if _is_readable(connection, select(column)):
        return []
    rows = connection.exec_driver_sql(f"SELECT rowid FROM {column.table.name}").scalars().all()
    one = select(column).where(text("rowid = :row"))
    return [row for row in rows if not _is_readable(connection, one, row=row)]


def _is_readable(connection: Connection, query: Select[Any], **values: int) -> bool:
    try:
        connection.execute(query, values).all()
    except (*NEVER_WRITTEN, OperationalError) as error:
        _about_a_value(error)
        return False
    return True


def ids_of_trials(connection: Connection, key: StudyKey | None = None) -> list[str]:
    """Of all trials, or of those that the store has of a study; those that are none are left
    out."""
    query = select(trial.c.id)
    if key is not None:
        query = query.where(trial.c.id.in_(select_members(key, study_trial.c.trial_id)))
    if connection.dialect.name == "sqlite":
        query = query.where(text(f"NOT ({_NAMELESS})"))
    return list(connection.execute(query).scalars())


def damaged_trials(connection: Connection, trial_ids: Collection[str]) -> dict[str, str]:
    """A sentence for each of these trials that is not what was recorded, by its id, in the given
    order."""
    problems: dict[str, str] = {}
    for chunk in chunks(trial_ids, CHECKED_AT_ONCE):
        problems |= _problems(connection, chunk)
    return {
        trial_id: f"Trial {trial_id} {problems[trial_id]}."
        for trial_id in trial_ids
        if trial_id in problems
    }


def _problems(connection: Connection, trial_ids: Sequence[str]) -> dict[str, str]:
    try:
        return dict(_changes(connection, trial_ids))
    except (*NEVER_WRITTEN, OperationalError) as error:
        message = _about_a_value(error)
    if len(trial_ids) == 1:
        return {trial_ids[0]: f"holds what this program never wrote ({message})"}
    one_by_one = (_problems(connection, [trial_id]) for trial_id in trial_ids)
    return {trial_id: problem for problems in one_by_one for trial_id, problem in problems.items()}


def _changes(connection: Connection, trial_ids: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Trials and what is wrong with them; raises what comes of a value that cannot be read."""
    parts = part_checksums(connection, trial_ids)
    is_open = and_(trial.c.id.in_(trial_ids), trial.c.state.in_(OPEN))
    for values in connection.execute(select(*EPOCH).join(trial).where(is_open)):
        epoch_metrics(values)  # no checksum guards them yet
    measured = select(result.c.trial_id, result.c.metrics).where(result.c.trial_id.in_(trial_ids))
    results = by_first_column(connection.execute(measured).all())
    columns = [column for column in trial.c if column not in set(END)]
    for row in connection.execute(select(*END, *columns).where(trial.c.id.in_(trial_ids))):
        if problem := _problem(row, parts[row.id], [metrics for (metrics,) in results[row.id]]):
            yield row.id, problem


def _problem(row: Row[Any], parts: Mapping[str, str | None], results: Sequence[str]) -> str | None:
    if not is_config_of(row.id, row.config):
        return "has changed since it was recorded (config)"
    if end_is_wrong(row[: len(END)], row.checksum):
        return "has changed since it was recorded (end)"
    if not (isinstance(row.attempt, int) and row.attempt >= 0):
        return "has been tried a number of times that is no count"
    for name, checksum in parts.items():
        guarded = name != "epochs_checksum" or row.state not in OPEN
        if guarded and checksum != getattr(row, name):
            return f"has changed since it was recorded ({name.removesuffix('_checksum')})"
    for metrics in results:
        metrics_of(metrics)
    return "is done but has no results" if row.state == "done" and not results else None


def has_config(connection: Connection, trial_id: str) -> bool:
    """Whether a trial's config is that which it was planned with."""
    try:
        config = connection.execute(
            select(trial.c.config).where(trial.c.id == trial_id)
        ).scalar_one()
    except OperationalError as error:
        _about_a_value(error)
        return False
    return is_config_of(trial_id, config)


def damaged_studies(connection: Connection) -> dict[int, str]:
    """A sentence for each study whose members are not those that were planned, by its id."""
    problems = {}
    for study_id in connection.execute(select(study.c.id)).scalars().all():
        name = "?"
        is_sound = False
        try:
            row = connection.execute(select(study).where(study.c.id == study_id)).one()
            name, key = row.study, [getattr(row, column.name) for column in STUDY]
            members = connection.execute(
                select(*MEMBER).where(study_trial.c.study_id == study_id)
            ).all()
            is_sound = row.checksum == study_checksum(key, members)
        except (*NEVER_WRITTEN, OperationalError) as error:
            _about_a_value(error)
        if not is_sound:
            problems[study_id] = (
                f"The study {study_id} ({name}) or the list of its trials is not what was planned."
            )
    return problems


def _about_a_value(error: Exception) -> str:
    """What an error says of a value that cannot be read; raises any error about something else."""
    if isinstance(error, OperationalError):
        if code_of(error) is not None or not isinstance(error.orig, sqlite3.Error):
            raise error
        return first_line(str(error.orig))
    return first_line(error)
