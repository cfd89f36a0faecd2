"""Is a store sound? The database's own checks, and what this program promises beyond them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Connection, Select, Table, select, text
from sqlalchemy.exc import OperationalError

from orchestrator.store.checksums import (
    END,
    MEMBER,
    RESULT,
    STUDY,
    end_is_wrong,
    is_config_of,
    part_checksums,
    study_checksum,
)
from orchestrator.store.opening import open_database
from orchestrator.store.records import OPEN, metrics_of
from orchestrator.store.schema import UtcDateTime, result, study, study_trial, trial
from orchestrator.store.troubles import NEVER_WRITTEN, code_of
from trainables.errors import first_line

_NAMELESS = "typeof(id) <> 'text' OR length(id) <> 64 OR id GLOB '*[^0-9a-f]*'"


@dataclass(frozen=True, kw_only=True)
class Damage:
    """Something that is wrong, and with what."""

    sentence: str
    trial_id: str | None = None
    has_config: bool = True
    """Whether the trial's config is sound."""
    study_id: int | None = None


def check(url: str) -> list[str]:
    """Every problem found in the store at `url`, one sentence each; empty for a sound one.

    Looks for: damaged pages, broken rules of the tables and dangling references (SQLite; PostgreSQL guards its own),
    trials and studies that are not what their checksums say, values that no version of this program writes, and done
    trials without results. Raises UserError where the store cannot be opened or read at all.
    """
    with closing(open_database(url, create=False)) as database, database.read() as connection:
        findings = sqlite_findings(connection)
        sentences = [f"SQLite finds damage: {finding}." for finding in findings]
        if any(not finding.startswith("CHECK constraint") for finding in findings):
            return sentences  # nothing read from damaged pages says anything about the rest
        for table, row, parent, _ in dangling(connection):
            sentences.append(f"Row {row} of the table {table} refers to a row of {parent} that does not exist.")
        for row in nameless_trials(connection):
            sentences.append(f"Row {row} of the table trial has no trial's id.")
        damage = [*damaged_trials(connection), *damaged_studies(connection)]
        return [*sentences, *(problem.sentence for problem in damage)]


def sqlite_findings(connection: Connection) -> list[str]:
    """What SQLite itself finds wrong with its pages, indices and rules."""
    if connection.dialect.name != "sqlite":
        return []
    findings = connection.exec_driver_sql("PRAGMA integrity_check").scalars()
    return [str(finding) for finding in findings if finding != "ok"]


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
            if isinstance(column.type, UtcDateTime) and not _is_readable(connection, select(column)):
                rows = connection.exec_driver_sql(f"SELECT rowid FROM {table.name}").scalars().all()
                for row in rows:
                    if not _is_readable(connection, select(column).where(text("rowid = :row")), row=row):
                        yield table, column, row


def _is_readable(connection: Connection, query: Select[Any], **values: int) -> bool:
    try:
        connection.execute(query, values).all()
    except (*NEVER_WRITTEN, OperationalError) as error:
        _about_a_value(error)
        return False
    return True


def damaged_trials(connection: Connection) -> Iterator[Damage]:
    """Trials that are not what was recorded, those without an id left out."""
    query = select(trial.c.id)
    if connection.dialect.name == "sqlite":
        query = query.where(text(f"NOT ({_NAMELESS})"))
    for trial_id in connection.execute(query).scalars().all():
        problem, has_config = None, False
        try:
            config = connection.execute(select(trial.c.config).where(trial.c.id == trial_id)).scalar_one()
            has_config = is_config_of(trial_id, config)
            problem = (
                _trial_problem(connection, trial_id) if has_config else "has changed since it was recorded (config)"
            )
        except (*NEVER_WRITTEN, OperationalError) as error:
            problem = f"holds what this program never wrote ({_about_a_value(error)})"
        if problem is not None:
            sentence = f"Trial {trial_id} {problem}."
            yield Damage(sentence=sentence, trial_id=trial_id, has_config=has_config)


def _trial_problem(connection: Connection, trial_id: str) -> str | None:
    columns = [column for column in trial.c if column not in set(END)]
    row = connection.execute(select(*END, *columns).where(trial.c.id == trial_id)).one()
    if end_is_wrong(row):
        return "has changed since it was recorded (end)"
    for name, checksum in part_checksums(connection, trial_id).items():
        guarded = name != "epochs_checksum" or row.state not in OPEN
        if guarded and checksum != getattr(row, name):
            return f"has changed since it was recorded ({name.removesuffix('_checksum')})"
    rows = connection.execute(select(*RESULT).where(result.c.trial_id == trial_id)).all()
    for stored in rows:
        metrics_of(stored.metrics)
    return "is done but has no results" if row.state == "done" and not rows else None


def damaged_studies(connection: Connection) -> Iterator[Damage]:
    """Studies whose members are not those that were planned."""
    for study_id in connection.execute(select(study.c.id)).scalars().all():
        name = "?"
        is_sound = False
        try:
            row = connection.execute(select(study).where(study.c.id == study_id)).one()
            name, key = row.study, [getattr(row, column.name) for column in STUDY]
            members = connection.execute(select(*MEMBER).where(study_trial.c.study_id == study_id)).all()
            is_sound = row.checksum == study_checksum(key, members)
        except (*NEVER_WRITTEN, OperationalError) as error:
            _about_a_value(error)
        if not is_sound:
            sentence = f"The study {study_id} ({name}) or the list of its trials is not what was planned."
            yield Damage(sentence=sentence, study_id=study_id)


def _about_a_value(error: Exception) -> str:
    """What an error says of a value that cannot be read; raises any error about something else."""
    if isinstance(error, OperationalError):
        if code_of(error) is not None:
            raise error
        return first_line(str(error.orig))
    return first_line(error)
