"""What trials come to, written: epochs, ends, measurements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, Row, delete, select, update

from orchestrator.store.checksums import RESULT, end_checksum, part_checksums
from orchestrator.store.database import Transactions, now, storable, upsert
from orchestrator.store.history import end_attempts
from orchestrator.store.records import metrics_of, name_and_version
from orchestrator.store.schema import epoch, result, trial
from orchestrator.store.schema import spectrum as spectrum_table
from orchestrator.store.studies import canonical_json, change_of
from trainables.trial_folder import EpochMetrics, FinalState, Metric, TrialOutcome, check_metrics

Metrics = Mapping[str, Metric]


class Recording(Transactions):
    """The part of the store that takes what trials come to; see `Store`."""

    def record_epochs(
        self, epochs: Mapping[str, Sequence[EpochMetrics]], *, attempts: Mapping[str, int]
    ) -> None:
        """Record epochs of several trials, by trial_id, as those of the attempts for which the
        trials were claimed.

        Those of an attempt that is over, whether the trial has ended or is another's by now, are
        left out. An epoch recorded before is replaced, since a resumed trial repeats some."""
        with self._database.write() as connection:
            rows = []
            # In the order of their ids: two processes that lock the same trials in different orders
            # block each other.
            for trial_id in sorted(epochs):
                row = _locked(connection, trial_id)
                if row.state == "running" and row.attempt == attempts[trial_id]:
                    rows += _epoch_rows(trial_id, epochs[trial_id])
            upsert(connection, epoch, rows)

    def record(
        self,
        outcome: TrialOutcome,
        *,
        run_id: int,
        spectrum: np.ndarray | None,
        attempt: int | None = None,
    ) -> bool:
        """Record a trial's end: state, cause, environment, epochs, measurements, spectrum, all or
        nothing.

        The outcome's epochs, where it lists any, and its measurements replace what earlier attempts
        left. `spectrum` is one-dimensional, in float64. `attempt` is the one that came to this end,
        None for an end that was found as a file. Returns False, having written nothing, where the
        trial does not take this end (see `Store`). Raises ValueError for metrics that cannot be
        recorded (see `check_metrics`), an epoch's number that is not finite, a measurement not
        called "name@version", and a metric name that occurs in two measurements."""
        trial_id = outcome.trial_id
        measured = {
            name_and_version(name): metrics for name, metrics in outcome.measurements.items()
        }
        _check(measured)
        epoch_rows = _epoch_rows(trial_id, outcome.epochs)
        with self._database.write() as connection:
            row = _locked(connection, trial_id)
            if not _takes(row, outcome.state, attempt):
                return False
            for table in (result, spectrum_table, *([epoch] if epoch_rows else [])):
                connection.execute(delete(table).where(table.c.trial_id == trial_id))
            if epoch_rows:
                connection.execute(epoch.insert(), epoch_rows)
            for (name, version), metrics in measured.items():
                _insert_result(connection, trial_id, name, version, metrics, run_id)
            if spectrum is not None:
                _add_spectrum(connection, trial_id, spectrum, "its outcome")
            cause = outcome.cause and storable(outcome.cause)
            environment = canonical_json(outcome.environment) if outcome.environment else None
            with self._database.reading():  # epochs of earlier attempts may be among them
                checksums = part_checksums(connection, [trial_id])[trial_id]
            moment = now(connection)
            values = {
                "state": outcome.state,
                "owner": None,
                "lease_until": None,
                "ended_at": moment,
                "run_id": run_id,
                "cause": cause,
                "environment": environment,
                "checksum": end_checksum(
                    [trial_id, outcome.state, row.attempt, cause, environment]
                ),
                **checksums,
            }
            connection.execute(update(trial).where(trial.c.id == trial_id).values(values))
            end_attempts(connection, [trial_id], cause, moment)
            return True

    def fail(self, trial_id: str, *, cause: str, run_id: int, attempt: int | None = None) -> bool:
        """Mark a trial failed for a cause (one sentence); returns False where it does not take it,
        as `record` does."""
        outcome = TrialOutcome(trial_id=trial_id, state="failed", cause=cause)
        return self.record(outcome, run_id=run_id, spectrum=None, attempt=attempt)

    def add_measurement(
        self,
        trial_id: str,
        name_at_version: str,
        metrics: Metrics,
        *,
        run_id: int,
        spectrum: np.ndarray | None = None,
    ) -> bool:
        """Add a measurement taken later to a done trial; returns False, having written nothing, if
        it has that one.

        Raises ValueError as `record` does, for a trial that is not done, and for a spectrum unlike
        the one stored."""
        name, version = name_and_version(name_at_version)
        with self._database.write() as connection:
            row = _locked(connection, trial_id)
            if row.state != "done":
                raise ValueError(
                    f"a measurement can be added to a done trial only, {trial_id} is {row.state}"
                )
            # A checksum of damaged results would pass them off as sound.
            with self._database.reading():
                rows = connection.execute(
                    select(*RESULT).where(result.c.trial_id == trial_id)
                ).all()
                if part_checksums(connection, [trial_id])[trial_id].items() - row._mapping.items():
                    self._refuse([change_of("results", trial_id)])
                measured: dict[tuple[str, int], Metrics] = {
                    (row.measurement, row.version): metrics_of(row.metrics) for row in rows
                }
            if (name, version) in measured:
                return False
            _check({**measured, (name, version): metrics})
            _insert_result(connection, trial_id, name, version, metrics, run_id)
            if spectrum is not None:
                _add_spectrum(connection, trial_id, spectrum, name_at_version)
            checksums = part_checksums(connection, [trial_id])[trial_id]
            del checksums["epochs_checksum"]
            connection.execute(update(trial).where(trial.c.id == trial_id).values(checksums))
            return True


def _locked(connection: Connection, trial_id: str) -> Row[Any]:
    """State, attempt, whether its lease has run out, and checksums of a trial, whose row stays
    locked."""
    lapsed = (trial.c.lease_until <= now(connection)).label("lapsed")
    checksums = (trial.c.results_checksum, trial.c.epochs_checksum, trial.c.spectrum_checksum)
    query = select(trial.c.state, trial.c.attempt, lapsed, *checksums).where(trial.c.id == trial_id)
    row = connection.execute(query.with_for_update(key_share=True)).one_or_none()
    if row is None:
        raise KeyError(trial_id)
    return row


def _takes(row: Row[Any], state: FinalState, attempt: int | None) -> bool:
    """Whether a trial takes this end; see `Store`."""
    if row.state == "done" or state == "done":
        return bool(row.state != "done")
    if attempt is not None:
        return bool(row.state == "running" and row.attempt == attempt)
    return bool(row.state == "planned" or (row.state == "running" and row.lapsed))


def _epoch_rows(trial_id: str, epochs: Sequence[EpochMetrics]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {"trial_id": trial_id, **metrics.model_dump()} for metrics in epochs
    ]
    for row in rows:
        for name in ("train_loss", "valid_loss", "seconds", "entropy_rank"):
            if row[name] is not None and not math.isfinite(row[name]):
                raise ValueError(
                    f"an epoch's numbers have to be finite, {name} of epoch {row['epoch']} is "
                    f"{row[name]}"
                )
    return rows


def _check(measured: Mapping[tuple[str, int], Metrics]) -> None:
    """Raise ValueError for metrics that cannot be recorded, and for one metric name in two
    measurements."""
    measurements: dict[str, str] = {}
    for (measurement, _), metrics in measured.items():
        check_metrics(metrics)
        for metric in metrics:
            first = measurements.setdefault(metric, measurement)
            if first != measurement:
                raise ValueError(
                    f"the metric {metric} is in two measurements, {first} and {measurement}"
                )


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


def _add_spectrum(
    connection: Connection, trial_id: str, singular_values: np.ndarray, source: str
) -> None:
    if singular_values.ndim != 1 or not np.isfinite(singular_values).all():
        shape = singular_values.shape
        raise ValueError(
            f"a spectrum is a one-dimensional array of finite numbers, not this one of shape "
            f"{shape}"
        )
    values = singular_values.astype("<f8").tobytes()
    query = select(spectrum_table.c.singular_values).where(spectrum_table.c.trial_id == trial_id)
    stored = connection.execute(query).scalar_one_or_none()
    if stored is None:
        row = {"trial_id": trial_id, "length": len(values) // 8, "singular_values": values}
        connection.execute(spectrum_table.insert().values(row))
    elif stored != values:
        raise ValueError(f"trial {trial_id} is done with another spectrum than {source} gives")
