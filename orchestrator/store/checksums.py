"""What a store's numbers were when they were written: the checksums that stand beside them, made
and compared.

A trial that has ended has four: of its end, its results, its epochs and its spectrum. A study has
one, of what it is called and of all its members. A trial's id is the checksum of its config. All
are SHA-256 in hex digits, over values as the database gives them back. They show what changed by
accident: who changes a store on purpose can change them too."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from sqlalchemy import Column, Connection, Table, select

from orchestrator.store.records import ENDED, STATES
from orchestrator.store.schema import epoch, result, spectrum, study, study_trial, trial

END = (trial.c.id, trial.c.state, trial.c.attempt, trial.c.cause, trial.c.environment)
EPOCH = tuple(column for column in epoch.c if column.name != "trial_id")
RESULT = (result.c.measurement, result.c.version, result.c.metrics)
STUDY = (study.c.study, study.c.scale, study.c.corpus, study.c.overrides)
MEMBER = tuple(column for column in study_trial.c if column.name != "study_id")
COLUMNS_AT_FIRST = 8
"""The most that a row of `rows_checksum` had when the first checksums were made. Those that came
later count only where they hold something, or one after them does, so that a row keeps its checksum
when a version adds a column."""
Values = Sequence[Any]
_JSON = json.JSONEncoder(separators=(",", ":"))


def end_checksum(values: Values) -> str:
    """Of the columns `END` of a trial: how it ended."""
    return _checksum(tuple(values))


def rows_checksum(trial_id: str, rows: Iterable[Values]) -> str | None:
    """Of all results (`RESULT`) or epochs (`EPOCH`) of a trial, and of whose they are; None where
    there are none."""
    values = sorted(map(_as_first, rows))
    return _checksum([trial_id, values]) if values else None


def spectrum_checksum(trial_id: str, singular_values: bytes | None) -> str | None:
    """Of a trial's spectrum, and of whose it is; None where there is none."""
    return (
        None
        if singular_values is None
        else hashlib.sha256(trial_id.encode() + singular_values).hexdigest()
    )


def study_checksum(key: Values, members: Iterable[Values]) -> str:
    """Of what a study is called (`STUDY`) and of all its members (`MEMBER`)."""
    return _checksum([key, sorted(map(tuple, members))])


def is_config_of(trial_id: str, config: str | None) -> bool:
    """Whether a config, as it is stored, is that of the trial of this id."""
    return isinstance(config, str) and hashlib.sha256(config.encode()).hexdigest() == trial_id


def end_is_wrong(end: Values, checksum: str | None) -> bool:
    """Whether a trial, by its columns `END`, ended in another way than was recorded, if it has
    ended."""
    state = end[1]
    return state not in STATES or checksum != (end_checksum(end) if state in ENDED else None)


def by_first_column(rows: Iterable[Values]) -> defaultdict[Any, list[Values]]:
    """The other columns of the rows, by the first one: the id of what they belong to."""
    others: defaultdict[Any, list[Values]] = defaultdict(list)
    for row in rows:
        others[row[0]].append(row[1:])
    return others


def part_checksums(
    connection: Connection, trial_ids: Collection[str]
) -> dict[str, dict[str, str | None]]:
    """By trial id: of its results, epochs and spectrum as the database holds them now, by the names
    of the columns."""

    def rows_of(table: Table, *columns: Column[Any]) -> defaultdict[str, list[Values]]:
        query = select(table.c.trial_id, *columns).where(table.c.trial_id.in_(trial_ids))
        return by_first_column(connection.execute(query).all())

    results, epochs = rows_of(result, *RESULT), rows_of(epoch, *EPOCH)
    spectra = rows_of(spectrum, spectrum.c.singular_values)
    return {
        trial_id: {
            "results_checksum": rows_checksum(trial_id, results[trial_id]),
            "epochs_checksum": rows_checksum(trial_id, epochs[trial_id]),
            "spectrum_checksum": spectrum_checksum(
                trial_id, spectra[trial_id][0][0] if spectra[trial_id] else None
            ),
        }
        for trial_id in trial_ids
    }


def _as_first(row: Values) -> tuple[Any, ...]:
    """Without later columns that hold nothing."""
    length = len(row)
    while length > COLUMNS_AT_FIRST and row[length - 1] is None:
        length -= 1
    return tuple(row[:length])


def _checksum(values: Any) -> str:
    return hashlib.sha256(_JSON.encode(values).encode()).hexdigest()
