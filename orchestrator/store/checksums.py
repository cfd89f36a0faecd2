"""What a store's numbers were when they were written: the checksums that stand beside them, made and compared.

A trial that has ended has four: of its end, its results, its epochs and its spectrum. A study has one, of what it is
called and of all its members. A trial's id is the checksum of its config. All are SHA-256 in hex digits, over values as
the database gives them back. They show what changed by accident: who changes a store on purpose can change them too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Row, select

from orchestrator.store.records import ENDED, STATES
from orchestrator.store.schema import epoch, result, spectrum, study, study_trial, trial

END = (trial.c.id, trial.c.state, trial.c.attempt, trial.c.cause, trial.c.environment)
EPOCH = tuple(column for column in epoch.c if column.name != "trial_id")
RESULT = (result.c.measurement, result.c.version, result.c.metrics)
STUDY = (study.c.study, study.c.scale, study.c.corpus, study.c.overrides)
MEMBER = tuple(column for column in study_trial.c if column.name != "study_id")
Values = Sequence[Any]


def end_checksum(values: Values) -> str:
    """Of the columns `END` of a trial: how it ended."""
    return _checksum(list(values))


def rows_checksum(trial_id: str, rows: Iterable[Values]) -> str | None:
    """Of all results (`RESULT`) or epochs (`EPOCH`) of a trial, and of whose they are; None where there are none."""
    values = sorted(map(tuple, rows))
    return _checksum([trial_id, values]) if values else None


def spectrum_checksum(trial_id: str, singular_values: bytes | None) -> str | None:
    """Of a trial's spectrum, and of whose it is; None where there is none."""
    return None if singular_values is None else hashlib.sha256(trial_id.encode() + singular_values).hexdigest()


def study_checksum(key: Values, members: Iterable[Values]) -> str:
    """Of what a study is called (`STUDY`) and of all its members (`MEMBER`)."""
    return _checksum([list(key), sorted(map(list, members))])


def is_config_of(trial_id: str, config: str | None) -> bool:
    """Whether a config, as it is stored, is that of the trial of this id."""
    return isinstance(config, str) and hashlib.sha256(config.encode()).hexdigest() == trial_id


def end_is_wrong(row: Row[Any]) -> bool:
    """Whether a trial, a row with `END` and its checksum, ended in another way than was recorded, if it has ended."""
    if row.state not in STATES:
        return True
    values = [getattr(row, column.name) for column in END]
    return bool(row.checksum != (end_checksum(values) if row.state in ENDED else None))


def part_checksums(connection: Connection, trial_id: str) -> dict[str, str | None]:
    """Of a trial's results, epochs and spectrum as the database holds them now, by the names of the columns."""
    rows = {
        table.name: connection.execute(select(*columns).where(table.c.trial_id == trial_id)).all()
        for table, columns in ((result, RESULT), (epoch, EPOCH), (spectrum, (spectrum.c.singular_values,)))
    }
    values = rows["spectrum"][0][0] if rows["spectrum"] else None
    return {
        "results_checksum": rows_checksum(trial_id, rows["result"]),
        "epochs_checksum": rows_checksum(trial_id, rows["epoch"]),
        "spectrum_checksum": spectrum_checksum(trial_id, values),
    }


def _checksum(values: Any) -> str:
    return hashlib.sha256(json.dumps(values, separators=(",", ":")).encode()).hexdigest()
