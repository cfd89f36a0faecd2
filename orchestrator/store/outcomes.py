"""What trials measured, written and read. Every function works inside the caller's transaction."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from sqlalchemy import Connection, delete, select, update

from orchestrator.store.database import now, upsert
from orchestrator.store.membership import canonical_json, is_study, trials
from orchestrator.store.records import RunRecord, StudyKey
from orchestrator.store.schema import epoch, result, run, spectrum, study, study_trial, trial
from trainables.trial_folder.outcome import EpochMetrics, Metric, TrialOutcome

Metrics = Mapping[str, Metric]


def record_epochs(connection: Connection, epochs: Mapping[str, Sequence[EpochMetrics]]) -> None:
    """See `Store.record_epochs`."""
    rows = []
    # In the order of their ids: two processes that lock the same trials in different orders would block each other.
    for trial_id in sorted(epochs):
        if _locked_state(connection, trial_id) != "done":
            rows += _epoch_rows(trial_id, epochs[trial_id])
    upsert(connection, epoch, rows)


def record(connection: Connection, outcome: TrialOutcome, run_id: int, singular_values: np.ndarray | None) -> bool:
    """See `Store.record`."""
    trial_id = outcome.trial_id
    measured = {_parse(name): metrics for name, metrics in outcome.measurements.items()}
    _check(measured)
    values = None if singular_values is None else _encode(singular_values)
    epoch_rows = _epoch_rows(trial_id, outcome.epochs)
    if _locked_state(connection, trial_id) == "done":
        return False
    for table in (result, spectrum, epoch):
        if table is not epoch or epoch_rows:
            connection.execute(delete(table).where(table.c.trial_id == trial_id))
    if epoch_rows:
        connection.execute(epoch.insert(), epoch_rows)
    for (name, version), metrics in measured.items():
        _insert_result(connection, trial_id, name, version, metrics, run_id)
    if values is not None:
        _insert_spectrum(connection, trial_id, values)
    environment = canonical_json(outcome.environment)
    _end(connection, trial_id, outcome.state, cause=outcome.cause, run_id=run_id, environment=environment)
    return True


def add_measurement(
    connection: Connection,
    trial_id: str,
    name_at_version: str,
    metrics: Metrics,
    *,
    run_id: int,
    singular_values: np.ndarray | None,
) -> bool:
    """See `Store.add_measurement`."""
    state = _locked_state(connection, trial_id)
    if state != "done":
        raise ValueError(f"a measurement can be added to a done trial only, {trial_id} is {state}")
    name, version = _parse(name_at_version)
    query = select(result).where(result.c.trial_id == trial_id)
    measured: dict[tuple[str, int], Metrics] = {
        (row.measurement, row.version): json.loads(row.metrics) for row in connection.execute(query)
    }
    if (name, version) in measured:
        return False
    _check({**measured, (name, version): metrics})
    _insert_result(connection, trial_id, name, version, metrics, run_id)
    if singular_values is not None:
        values = _encode(singular_values)
        stored = connection.execute(_spectrum_of(trial_id)).scalar_one_or_none()
        if stored is None:
            _insert_spectrum(connection, trial_id, values)
        elif stored != values:
            raise ValueError(f"trial {trial_id} is done with another spectrum than {name_at_version} gives")
    return True


def lacking(connection: Connection, key: StudyKey, measurements: Collection[str]) -> dict[str, list[str]]:
    """See `Store.lacking`: one query, answered from the results' primary key."""
    wanted = {_parse(name): name for name in measurements}
    query = (
        select(study_trial.c.trial_id, result.c.measurement, result.c.version)
        .join_from(study, study_trial)
        .join(trial)
        .join(result, result.c.trial_id == study_trial.c.trial_id, isouter=True)
        .where(is_study(key) & (trial.c.state == "done"))
        .order_by(study_trial.c.position)
    )
    measured: defaultdict[str, set[tuple[str, int]]] = defaultdict(set)
    for row in connection.execute(query):
        measured[row.trial_id].add((row.measurement, row.version))
    missing = {trial_id: [wanted[each] for each in wanted if each not in has] for trial_id, has in measured.items()}
    return {trial_id: names for trial_id, names in missing.items() if names}


def fail(connection: Connection, trial_id: str, *, cause: str, run_id: int) -> bool:
    """See `Store.fail`."""
    if _locked_state(connection, trial_id) == "done":
        return False
    _end(connection, trial_id, "failed", cause=cause, run_id=run_id, environment=None)
    return True


def begin_run(connection: Connection, record: RunRecord) -> int:
    """See `Store.begin_run`."""
    row = {**asdict(record), "packages": canonical_json(record.packages), "started_at": now(connection)}
    key = connection.execute(run.insert().values(row)).inserted_primary_key
    assert key is not None, "an insert of one row gives its key"
    return int(key[0])


def end_run(connection: Connection, run_id: int) -> None:
    """See `Store.end_run`."""
    ended = connection.execute(update(run).where(run.c.id == run_id).values(ended_at=now(connection)))
    if ended.rowcount == 0:
        raise KeyError(run_id)


def results(connection: Connection, key: StudyKey) -> list[dict[str, Any]]:
    """See `Store.results`: two queries, however many trials there are."""
    members = study_trial.join(study, study.c.id == study_trial.c.study_id)
    metrics: defaultdict[str, dict[str, Metric]] = defaultdict(dict)
    query = (
        select(result.c.trial_id, result.c.metrics)
        .select_from(members.join(result, result.c.trial_id == study_trial.c.trial_id))
        .where(is_study(key))
        .order_by(result.c.version)
    )
    for row in connection.execute(query):
        metrics[row.trial_id].update(json.loads(row.metrics))
    return [
        {
            "trial_id": row.trial_id,
            "name": row.name,
            "place": row.place,
            "state": row.state,
            "attempt": row.attempt,
            "cause": row.cause,
            "config": row.config,
            "metrics": metrics[row.trial_id],
        }
        for row in trials(connection, key)
    ]


def epochs(connection: Connection, trial_id: str) -> list[EpochMetrics]:
    """See `Store.epochs`."""
    _must_exist(connection, trial_id)
    fields = [epoch.c[name] for name in EpochMetrics.model_fields]
    rows = connection.execute(select(*fields).where(epoch.c.trial_id == trial_id).order_by(epoch.c.epoch))
    return [EpochMetrics(**row) for row in rows.mappings()]


def read_spectrum(connection: Connection, trial_id: str) -> np.ndarray | None:
    """See `Store.spectrum`."""
    _must_exist(connection, trial_id)
    stored = connection.execute(_spectrum_of(trial_id)).scalar_one_or_none()
    return None if stored is None else _decode(stored)


def spectra(connection: Connection, key: StudyKey) -> dict[str, np.ndarray]:
    """See `Store.spectra`."""
    query = (
        select(spectrum.c.trial_id, spectrum.c.singular_values)
        .join_from(study, study_trial)
        .join(spectrum, spectrum.c.trial_id == study_trial.c.trial_id)
        .where(is_study(key))
    )
    return {row.trial_id: _decode(row.singular_values) for row in connection.execute(query)}


def environment(connection: Connection, trial_id: str) -> dict[str, str]:
    """See `Store.environment`."""
    stored = connection.execute(select(trial.c.environment).where(trial.c.id == trial_id)).one_or_none()
    if stored is None:
        raise KeyError(trial_id)
    return {} if stored.environment is None else dict(json.loads(stored.environment))


def environments(connection: Connection, key: StudyKey) -> dict[str, dict[str, str]]:
    """See `Store.environments`."""
    query = (
        select(trial.c.id, trial.c.environment)
        .join_from(study, study_trial)
        .join(trial)
        .where(is_study(key), trial.c.environment.is_not(None))
    )
    return {row.id: json.loads(row.environment) for row in connection.execute(query)}


def _locked_state(connection: Connection, trial_id: str) -> str:
    query = select(trial.c.state).where(trial.c.id == trial_id).with_for_update(key_share=True)
    state = connection.execute(query).scalar_one_or_none()
    if state is None:
        raise KeyError(trial_id)
    return str(state)


def _must_exist(connection: Connection, trial_id: str) -> None:
    if connection.execute(select(trial.c.id).where(trial.c.id == trial_id)).one_or_none() is None:
        raise KeyError(trial_id)


def _end(
    connection: Connection, trial_id: str, state: str, *, cause: str | None, run_id: int, environment: str | None
) -> None:
    values = {
        "state": state,
        "owner": None,
        "lease_until": None,
        "ended_at": now(connection),
        "run_id": run_id,
        "cause": cause,
        "environment": environment,
    }
    connection.execute(update(trial).where(trial.c.id == trial_id).values(values))


def _epoch_rows(trial_id: str, epochs: Sequence[EpochMetrics]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{"trial_id": trial_id, **each.model_dump()} for each in epochs]
    for row in rows:
        for name in ("train_loss", "valid_loss", "seconds"):
            _check_finite(f"{name} of epoch {row['epoch']}", row[name])
    return rows


def _parse(name_at_version: str) -> tuple[str, int]:
    name, separator, version = name_at_version.rpartition("@")
    if not (name and separator and version.isascii() and version.isdigit()):
        raise ValueError(f'a measurement is called "name@version", as in "spectrum@1": not "{name_at_version}"')
    return name, int(version)


def _check(measured: Mapping[tuple[str, int], Metrics]) -> None:
    """Raise ValueError for a value that is not finite, and for one metric name in two measurements."""
    measurement_of: dict[str, str] = {}
    for (measurement, _), metrics in measured.items():
        for metric, value in metrics.items():
            _check_finite(metric, value)
            other = measurement_of.setdefault(metric, measurement)
            if other != measurement:
                raise ValueError(f"the metric {metric} is in two measurements, {other} and {measurement}")


def _check_finite(name: str, value: Metric) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"a metric has to be finite, {name} is {value}: a diverged trial is a state, not a number")


def _encode(singular_values: np.ndarray) -> bytes:
    if singular_values.ndim != 1 or not np.isfinite(singular_values).all():
        shape = singular_values.shape
        raise ValueError(f"a spectrum is a one-dimensional array of finite numbers, not this one of shape {shape}")
    return singular_values.astype("<f8").tobytes()


def _decode(stored: bytes) -> np.ndarray:
    return np.frombuffer(stored, dtype="<f8").astype(np.float64)


def _spectrum_of(trial_id: str) -> Any:
    return select(spectrum.c.singular_values).where(spectrum.c.trial_id == trial_id)


def _insert_spectrum(connection: Connection, trial_id: str, values: bytes) -> None:
    row = {"trial_id": trial_id, "length": len(values) // 8, "singular_values": values}
    connection.execute(spectrum.insert().values(row))


def _insert_result(
    connection: Connection, trial_id: str, name: str, version: int, metrics: Metrics, run_id: int
) -> None:
    row = {
        "trial_id": trial_id,
        "measurement": name,
        "version": version,
        "metrics": canonical_json(dict(metrics)),
        "run_id": run_id,
        "recorded_at": now(connection),
    }
    connection.execute(result.insert().values(row))
