"""What trials come to: epochs, ends, measurements, written and read."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, delete, select, update

from orchestrator.store.database import Transactions, now, upsert
from orchestrator.store.records import StudyKey
from orchestrator.store.schema import epoch, result, study_trial, trial
from orchestrator.store.schema import spectrum as spectrum_table
from orchestrator.store.studies import canonical_json, read_trials, select_members
from trainables.trial_folder import EpochMetrics, Metric, TrialOutcome

Metrics = Mapping[str, Metric]
_EPOCH_FIELDS = [epoch.c[name] for name in EpochMetrics.model_fields]


class Results(Transactions):
    """The part of the store that takes and gives results; see `Store`."""

    def record_epochs(self, epochs: Mapping[str, Sequence[EpochMetrics]]) -> None:
        """Record epochs of several trials, by trial_id. Those of done trials are left as they are.

        An epoch recorded before is replaced, since a resumed trial repeats some.
        """
        with self._database.write() as connection:
            rows = []
            # In the order of their ids: two processes that lock the same trials in different orders block each other.
            for trial_id in sorted(epochs):
                if _locked_state(connection, trial_id) != "done":
                    rows += _epoch_rows(trial_id, epochs[trial_id])
            upsert(connection, epoch, rows)

    def record(self, outcome: TrialOutcome, *, run_id: int, spectrum: np.ndarray | None) -> bool:
        """Record a trial's end: state, cause, environment, epochs, measurements, spectrum, all or nothing.

        The outcome's epochs, where it lists any, and its measurements replace what earlier attempts left. `spectrum` is
        one-dimensional, in float64. Returns False, having written nothing, for a trial that was done already.
        Raises ValueError for a value that is not finite, a measurement not called "name@version", and a metric name
        that occurs in two measurements.
        """
        trial_id = outcome.trial_id
        measured = {name_and_version(name): metrics for name, metrics in outcome.measurements.items()}
        _check(measured)
        epoch_rows = _epoch_rows(trial_id, outcome.epochs)
        with self._database.write() as connection:
            if _locked_state(connection, trial_id) == "done":
                return False
            for table in (result, spectrum_table, *([epoch] if epoch_rows else [])):
                connection.execute(delete(table).where(table.c.trial_id == trial_id))
            if epoch_rows:
                connection.execute(epoch.insert(), epoch_rows)
            for (name, version), metrics in measured.items():
                _insert_result(connection, trial_id, name, version, metrics, run_id)
            if spectrum is not None:
                _add_spectrum(connection, trial_id, spectrum, "its outcome")
            values = {
                "state": outcome.state,
                "owner": None,
                "lease_until": None,
                "ended_at": now(connection),
                "run_id": run_id,
                "cause": outcome.cause,
                "environment": canonical_json(outcome.environment) if outcome.environment else None,
            }
            connection.execute(update(trial).where(trial.c.id == trial_id).values(values))
            return True

    def fail(self, trial_id: str, *, cause: str, run_id: int) -> bool:
        """Mark a trial failed for a cause (one sentence); returns False, having written nothing, for a done trial."""
        outcome = TrialOutcome(trial_id=trial_id, state="failed", cause=cause)
        return self.record(outcome, run_id=run_id, spectrum=None)

    def add_measurement(
        self,
        trial_id: str,
        name_at_version: str,
        metrics: Metrics,
        *,
        run_id: int,
        spectrum: np.ndarray | None = None,
    ) -> bool:
        """Add a measurement taken later to a done trial; returns False, having written nothing, if it has that one.

        Raises ValueError as `record` does, for a trial that is not done, and for a spectrum unlike the one stored.
        """
        name, version = name_and_version(name_at_version)
        with self._database.write() as connection:
            state = _locked_state(connection, trial_id)
            if state != "done":
                raise ValueError(f"a measurement can be added to a done trial only, {trial_id} is {state}")
            rows = connection.execute(select(result).where(result.c.trial_id == trial_id))
            measured: dict[tuple[str, int], Metrics] = {
                (row.measurement, row.version): json.loads(row.metrics) for row in rows
            }
            if (name, version) in measured:
                return False
            _check({**measured, (name, version): metrics})
            _insert_result(connection, trial_id, name, version, metrics, run_id)
            if spectrum is not None:
                _add_spectrum(connection, trial_id, spectrum, name_at_version)
            return True

    def results(self, key: StudyKey) -> list[dict[str, Any]]:
        """One dict a trial in plan order, for a table.

        Keys: those of `TrialRow`, and metrics (flat, over all measurements; of several versions of one measurement,
        the latest has the last word).
        """
        measured = select_members(key, result.c.trial_id, result.c.metrics)
        query = measured.join(result, result.c.trial_id == study_trial.c.trial_id).order_by(result.c.version)
        metrics: defaultdict[str, dict[str, Metric]] = defaultdict(dict)
        with self._database.read() as connection:
            for row in connection.execute(query):
                metrics[row.trial_id].update(json.loads(row.metrics))
            rows = read_trials(connection, key)
        return [{**vars(row), "metrics": metrics[row.trial_id]} for row in rows]

    def lacking(self, key: StudyKey, measurements: Collection[str]) -> dict[str, list[str]]:
        """Which of these measurements ("name@version") each done trial of the study has not got: by trial id in plan
        order, the names in the given order, trials that have all of them left out. Reads no metrics.

        Raises ValueError for a measurement not called "name@version".
        """
        names = {name_and_version(name): name for name in measurements}
        query = (
            select_members(key, study_trial.c.trial_id, result.c.measurement, result.c.version)
            .join(trial)
            .join(result, result.c.trial_id == study_trial.c.trial_id, isouter=True)
            .where(trial.c.state == "done")
            .order_by(study_trial.c.position)
        )
        measured: defaultdict[str, set[tuple[str, int]]] = defaultdict(set)
        with self._database.read() as connection:  # answered from the results' primary key
            for row in connection.execute(query):
                measured[row.trial_id].add((row.measurement, row.version))
        missing = {
            trial_id: [name for versioned, name in names.items() if versioned not in present]
            for trial_id, present in measured.items()
        }
        return {trial_id: lacked for trial_id, lacked in missing.items() if lacked}

    def epochs(self, trial_id: str) -> list[EpochMetrics]:
        """The trial's epochs in order; empty before the first."""
        query = select(*_EPOCH_FIELDS).where(epoch.c.trial_id == trial_id).order_by(epoch.c.epoch)
        with self._database.read() as connection:
            return [EpochMetrics(**row) for row in connection.execute(query).mappings()]

    def epochs_by_trial(self, key: StudyKey) -> dict[str, list[EpochMetrics]]:
        """The epochs in order of those of the study's trials that have some, by trial id."""
        members = select_members(key, epoch.c.trial_id, *_EPOCH_FIELDS)
        query = members.join(epoch, epoch.c.trial_id == study_trial.c.trial_id).order_by(epoch.c.epoch)
        epochs: defaultdict[str, list[EpochMetrics]] = defaultdict(list)
        with self._database.read() as connection:
            for trial_id, *values in connection.execute(query):
                fields = dict(zip(EpochMetrics.model_fields, values, strict=True))
                epochs[trial_id].append(EpochMetrics(**fields))
        return dict(epochs)

    def spectra(self, key: StudyKey) -> dict[str, np.ndarray]:
        """The singular values of those of the study's trials that have some, float64, by trial id."""
        stored = select_members(key, spectrum_table.c.trial_id, spectrum_table.c.singular_values)
        query = stored.join(spectrum_table, spectrum_table.c.trial_id == study_trial.c.trial_id)
        with self._database.read() as connection:
            return {
                trial_id: np.frombuffer(values, dtype="<f8").astype(np.float64)
                for trial_id, values in connection.execute(query)
            }

    def environments(self, key: StudyKey) -> dict[str, dict[str, str]]:
        """Code and package versions, host and device of the recorded attempts, by trial id."""
        query = select_members(key, trial.c.id, trial.c.environment).join(trial).where(trial.c.environment.is_not(None))
        with self._database.read() as connection:
            return {trial_id: json.loads(environment) for trial_id, environment in connection.execute(query)}


def name_and_version(name_at_version: str) -> tuple[str, int]:
    """("spectrum", 1) of "spectrum@1". Raises ValueError for another form."""
    name, separator, version = name_at_version.rpartition("@")
    if not (name and separator and version.isascii() and version.isdigit()):
        raise ValueError(f'a measurement is called "name@version", as in "spectrum@1": not "{name_at_version}"')
    return name, int(version)


def _locked_state(connection: Connection, trial_id: str) -> str:
    query = select(trial.c.state).where(trial.c.id == trial_id).with_for_update(key_share=True)
    state = connection.execute(query).scalar_one_or_none()
    if state is None:
        raise KeyError(trial_id)
    return str(state)


def _epoch_rows(trial_id: str, epochs: Sequence[EpochMetrics]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{"trial_id": trial_id, **metrics.model_dump()} for metrics in epochs]
    for row in rows:
        for name in ("train_loss", "valid_loss", "seconds", "entropy_rank"):
            _check_finite(f"{name} of epoch {row['epoch']}", row[name])
    return rows


def _check(measured: Mapping[tuple[str, int], Metrics]) -> None:
    """Raise ValueError for a value that is not finite, and for one metric name in two measurements."""
    measurements: dict[str, str] = {}
    for (measurement, _), metrics in measured.items():
        for metric, value in metrics.items():
            _check_finite(metric, value)
            first = measurements.setdefault(metric, measurement)
            if first != measurement:
                raise ValueError(f"the metric {metric} is in two measurements, {first} and {measurement}")


def _check_finite(name: str, value: Metric | None) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"a metric has to be finite, {name} is {value}: a diverged trial is a state, not a number")


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


def _add_spectrum(connection: Connection, trial_id: str, singular_values: np.ndarray, source: str) -> None:
    if singular_values.ndim != 1 or not np.isfinite(singular_values).all():
        shape = singular_values.shape
        raise ValueError(f"a spectrum is a one-dimensional array of finite numbers, not this one of shape {shape}")
    values = singular_values.astype("<f8").tobytes()
    query = select(spectrum_table.c.singular_values).where(spectrum_table.c.trial_id == trial_id)
    stored = connection.execute(query).scalar_one_or_none()
    if stored is None:
        row = {"trial_id": trial_id, "length": len(values) // 8, "singular_values": values}
        connection.execute(spectrum_table.insert().values(row))
    elif stored != values:
        raise ValueError(f"trial {trial_id} is done with another spectrum than {source} gives")
