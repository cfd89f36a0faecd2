"""Damage put right where nothing is lost by it: what is damaged is planned anew."""

from __future__ import annotations

from contextlib import closing

from sqlalchemy import Connection, delete, update

from orchestrator.store.integrity import damaged_studies, damaged_trials, dangling, sqlite_findings
from orchestrator.store.opening import open_database
from orchestrator.store.schema import epoch, result, spectrum, stop_request, study, study_trial, trial
from orchestrator.store.triggers import drop_triggers, make_triggers
from orchestrator.store.troubles import AFRESH, NEVER_WRITTEN
from trainables.errors import UserError, first_line


def repair(url: str) -> list[str]:
    """Put the store at `url` right; returns a sentence for each damage that there was.

    A damaged trial is planned again: the next run of its study records its result file where that still lies in the
    storage, and trains it again where not. A trial without its config, and a study without its members, are forgotten
    until they are planned again. Raises UserError where the pages of the file themselves are damaged; the store stays
    as it was then.
    """
    with closing(open_database(url, create=False)) as database, database.write() as connection:
        try:
            sentences = _repair(connection)
        except NEVER_WRITTEN as error:
            raise UserError(_hopeless(database.address, first_line(error))) from error
        if findings := sqlite_findings(connection):
            raise UserError(_hopeless(database.address, findings[0]))
        return sentences


def _hopeless(address: str, problem: str) -> str:
    return f"The results store {address} cannot be put right ({problem}): {AFRESH}."


def _repair(connection: Connection) -> list[str]:
    drop_triggers(connection)
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
        connection.exec_driver_sql("REINDEX")
    sentences = []
    for name, row, _, _ in dangling(connection):
        connection.exec_driver_sql(f'DELETE FROM "{name}" WHERE rowid = ?', (row,))
        sentences.append(f"A row of the table {name} that refers to nothing is removed.")
    for damage in list(damaged_trials(connection)):
        _plan_again(connection, str(damage.trial_id), has_config=damage.has_config)
        sentences.append(f"{damage.sentence.rstrip('.')}: it is planned again.")
    for damage in list(damaged_studies(connection)):
        for table in (stop_request, study_trial):
            connection.execute(delete(table).where(table.c.study_id == damage.study_id))
        connection.execute(delete(study).where(study.c.id == damage.study_id))
        sentences.append(f"{damage.sentence.rstrip('.')}: the next run of it plans it again.")
    make_triggers(connection)
    return sentences


def _plan_again(connection: Connection, trial_id: str, *, has_config: bool) -> None:
    for table in (result, epoch, spectrum):
        connection.execute(delete(table).where(table.c.trial_id == trial_id))
    if has_config:
        kept = {"id", "attempt", "planned_at", "started_at", "config"}
        cleared = {column.name: None for column in trial.c if column.name not in kept}
        connection.execute(update(trial).where(trial.c.id == trial_id).values({**cleared, "state": "planned"}))
    else:
        for table in (stop_request, study_trial):
            connection.execute(delete(table).where(table.c.trial_id == trial_id))
        connection.execute(delete(trial).where(trial.c.id == trial_id))
