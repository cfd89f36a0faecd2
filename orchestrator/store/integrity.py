"""Is a store sound? The database's own checks, and what this program promises beyond them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import closing

import numpy as np
from sqlalchemy import Connection, exists, select

from orchestrator.store.opening import open_database
from orchestrator.store.schema import result, spectrum, trial
from orchestrator.store.studies import canonical_json


def check(url: str) -> list[str]:
    """Every problem found in the store at `url`, one sentence each; empty for a sound one.

    Looks for: damaged pages, broken rules of the tables and dangling references (SQLite; PostgreSQL guards its own),
    done trials without results, spectra with values that are not finite, and trials whose id is not the SHA-256 of
    their config. Raises UserError where the store cannot be opened at all.
    """
    with closing(open_database(url, create=False)) as database, database.read() as connection:
        damage = list(_damage(connection))
        if damage:  # nothing read from a damaged file says anything about the rest
            return damage
        return [*_without_results(connection), *_spectra(connection), *_identities(connection)]


def _damage(connection: Connection) -> Iterator[str]:
    if connection.dialect.name != "sqlite":
        return
    for (finding,) in connection.exec_driver_sql("PRAGMA integrity_check"):
        if finding != "ok":
            yield f"SQLite finds damage: {finding}."
    for table, row, parent, _ in connection.exec_driver_sql("PRAGMA foreign_key_check"):
        yield f"Row {row} of the table {table} refers to a row of {parent} that does not exist."


def _without_results(connection: Connection) -> Iterator[str]:
    measured = exists().where(result.c.trial_id == trial.c.id)
    for trial_id in connection.execute(select(trial.c.id).where(trial.c.state == "done", ~measured)).scalars():
        yield f"Trial {trial_id} is done but has no results."


def _spectra(connection: Connection) -> Iterator[str]:
    for row in connection.execute(select(spectrum).execution_options(yield_per=100)):
        if not np.isfinite(np.frombuffer(row.singular_values, dtype="<f8")).all():
            yield f"The spectrum of trial {row.trial_id} has values that are not finite."


def _identities(connection: Connection) -> Iterator[str]:
    for row in connection.execute(select(trial.c.id, trial.c.config).execution_options(yield_per=1_000)):
        try:
            identity = hashlib.sha256(canonical_json(json.loads(row.config)).encode()).hexdigest()
        except ValueError:
            yield f"The config of trial {row.id} is no JSON."
            continue
        if identity != row.id:
            yield f"Trial {row.id} has a config whose SHA-256 is {identity}: one of them was changed."
