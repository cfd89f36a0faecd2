"""Record and read the results of trials: epochs, outcomes, measurements and spectra."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray
from sqlalchemy import Connection, Row, Select, Table, delete, select, update

from orchestrator.store.claims import claimed_trials, clear, end_attempts
from orchestrator.store.database import Database, now, storable
from orchestrator.store.records import StudyKey
from orchestrator.store.schema import epoch, result, spectrum, study_trial, trial
from orchestrator.store.studies import among, select_members, trials_of
from trainables.trial_folder import (
    EPOCH,
    Epoch,
    FinalState,
    Metric,
    TrialOutcome,
    check_metrics,
)

Metrics = Mapping[str, Metric]
Spectrum = NDArray[float64]


class Results(Database):
    """Methods of `Store` that record and read results of trials."""

    def record_epochs(
        self, epochs: Mapping[str, Sequence[Epoch]], *, attempts: Mapping[str, int]
    ) -> None:
        """Record epochs of running trials, at least one for each trial id.

        `attempts` holds the trials' attempt numbers. Epochs are ignored if that attempt's claim has
        ended. If a resumed trial repeats an epoch, the new record replaces the old one.
        """
        with self.write() as connection:
            for trial_id in claimed_trials(connection, epochs, attempts):
                rows = _epoch_rows(trial_id, epochs[trial_id])
                is_repeated = epoch.c.epoch.in_([row["epoch"] for row in rows])
                connection.execute(delete(epoch).where(epoch.c.trial_id == trial_id, is_repeated))
                connection.execute(epoch.insert(), rows)

    def record(
        self,
        outcome: TrialOutcome,
        *,
        run_id: int | None,
        spectrum: np.ndarray | None = None,
        attempt: int | None = None,
    ) -> bool:
        """Record a trial's outcome; return whether the store accepts it.

        The first done outcome is accepted from any attempt, because all attempts have the same
        config. It never changes. Other outcomes are accepted only from the attempt that holds the
        claim. Omit `attempt` for an outcome from a file that no worker reported; it is accepted if
        the trial is planned or the lease has run out.

        Replaces the trial's measurements and, if the outcome has epochs, its epochs. Raises
        ValueError unless `spectrum` is a vector of finite numbers, and KeyError for an unknown
        trial.
        """
        trial_id = outcome.trial_id
        epochs = _epoch_rows(trial_id, outcome.epochs)
        results = [
            _result_row(trial_id, *measurement) for measurement in outcome.measurements.items()
        ]
        with self.write() as connection:
            if not _accepts(_locked_row(connection, trial_id), outcome.state, attempt):
                return False
            clear(connection, [trial_id], *(_TABLES if epochs else _TABLES[:2]))
            if epochs:
                connection.execute(epoch.insert(), epochs)
            if results:
                connection.execute(result.insert(), results)
            if spectrum is not None:
                _insert_spectrum(connection, trial_id, spectrum)
            cause = outcome.cause and storable(outcome.cause)
            moment = now(connection)
            values = {
                "state": outcome.state,
                "owner": None,
                "lease_until": None,
                "ended_at": moment,
                "run_id": run_id,
                "outcome": {"cause": cause, "environment": outcome.environment},
            }
            connection.execute(update(trial).where(trial.c.id == trial_id).values(values))
            end_attempts(connection, [trial_id], cause, moment)
            return True

    def add_measurement(
        self,
        trial_id: str,
        name_at_version: str,
        metrics: Metrics,
        *,
        spectrum: np.ndarray | None = None,
    ) -> bool:
        """Add a measurement to a done trial; return False if the trial already has it.

        Raises KeyError if the trial is unknown. Raises ValueError if the trial is not done, if
        `spectrum` differs from the stored one, or if a metric is invalid (see `check_metrics`) or
        belongs to another measurement.
        """
        check_metrics(metrics)
        new_row = _result_row(trial_id, name_at_version, metrics)
        with self.write() as connection:
            state = _locked_row(connection, trial_id).state
            if state != "done":
                raise ValueError(
                    f"only a done trial takes another measurement; {trial_id} is {state}"
                )
            with self.reading():
                rows = connection.execute(_select_rows(result, [trial_id])).all()
                stored_spectrum = _spectra(connection, [trial_id]).get(trial_id)
            for row in rows:
                if row.measurement == new_row["measurement"]:
                    if row.version == new_row["version"]:
                        return False
                elif clash := row.metrics.keys() & metrics.keys():
                    raise ValueError(
                        f"the metric {min(clash)} is in two measurements, {row.measurement} and "
                        f"{name_at_version}"
                    )
            if spectrum is not None:
                if stored_spectrum is None:
                    _insert_spectrum(connection, trial_id, spectrum)
                elif stored_spectrum.tobytes() != spectrum.astype(float64).tobytes():
                    raise ValueError(
                        f"the spectrum of trial {trial_id} differs from that of {name_at_version}"
                    )
            # Insert last: after an error, a rebuild continues in the same transaction.
            connection.execute(result.insert().values(new_row))
            return True

    def results(self, key: StudyKey, only: Collection[str] | None = None) -> list[dict[str, Any]]:
        """Return a dict for each trial in plan order: the fields of `TrialRow`, and "metrics".

        "metrics" maps each metric's name to its value, taken from the latest version of its
        measurement.
        """
        query = among(select_members(key, result), only)
        query = query.join(result, result.c.trial_id == study_trial.c.trial_id)
        with self.read() as connection:
            rows = trials_of(connection, key, only)
            metrics: defaultdict[str, dict[str, Metric]] = defaultdict(dict)
            for row in connection.execute(query.order_by(result.c.version)):
                check_metrics(row.metrics, measurement=f"{row.measurement}@{row.version}")
                metrics[row.trial_id].update(row.metrics)
        return [{**vars(row), "metrics": metrics[row.trial_id]} for row in rows]

    def done(self) -> list[str]:
        """Return the ids of all done trials, sorted."""
        query = select(trial.c.id).where(trial.c.state == "done")
        with self.read() as connection:
            return sorted(connection.execute(query).scalars())

    def ended(self, trial_ids: Collection[str]) -> dict[str, dict[str, Any]]:
        """Return everything that is stored about the ended trials, by id.

        Measurements are keyed by "name@version". The spectrum is float64 bytes or None.
        """
        query = select(trial.c.id, trial.c.state, trial.c.outcome).where(
            trial.c.id.in_(trial_ids), trial.c.outcome.is_not(None)
        )
        measured: defaultdict[str, dict[str, dict[str, Metric]]] = defaultdict(dict)
        with self.read() as connection:
            rows = connection.execute(query).all()
            for row in connection.execute(_select_rows(result, trial_ids)):
                measured[row.trial_id][f"{row.measurement}@{row.version}"] = row.metrics
            epochs, spectra = _epochs(connection, trial_ids), _spectra(connection, trial_ids)
        return {
            row.id: {
                "state": row.state,
                **row.outcome,
                "epochs": epochs.get(row.id, []),
                "measurements": measured[row.id],
                "spectrum": spectra[row.id].tobytes() if row.id in spectra else None,
            }
            for row in rows
        }

    def unmeasured(self, key: StudyKey, measurements: Collection[str]) -> dict[str, list[str]]:
        """Return the `measurements` ("name@version") that each done trial does not have, by id.

        Ids are in plan order. Trials with all measurements are omitted.
        """
        query = (
            select_members(key, study_trial.c.trial_id, result.c.measurement, result.c.version)
            .join(trial)
            .join(result, result.c.trial_id == study_trial.c.trial_id, isouter=True)
            .where(trial.c.state == "done")
            .order_by(study_trial.c.position)
        )
        measured: defaultdict[str, set[str]] = defaultdict(set)
        with self.read() as connection:  # answered from the results' primary key
            for row in connection.execute(query):
                measured[row.trial_id].add(f"{row.measurement}@{row.version}")
        missing_names = {
            trial_id: [name for name in measurements if name not in present_names]
            for trial_id, present_names in measured.items()
        }
        return {trial_id: names for trial_id, names in missing_names.items() if names}

    def epochs(self, trial_id: str) -> list[Epoch]:
        """Return the trial's epochs in order."""
        return self.epochs_by_trial([trial_id]).get(trial_id, [])

    def epochs_by_trial(self, trials: StudyKey | Collection[str]) -> dict[str, list[Epoch]]:
        """Return the epochs of the study's trials, or of these ids, by trial id."""
        with self.read() as connection:
            return _epochs(connection, trials)

    def spectra(self, trials: StudyKey | Collection[str]) -> dict[str, Spectrum]:
        """Return the singular values (float64) of the study's trials, or of these ids, by id."""
        with self.read() as connection:
            return _spectra(connection, trials)


_TABLES = (result, spectrum, epoch)


def _select_rows(table: Table, trials: StudyKey | Collection[str]) -> Select[Any]:
    if isinstance(trials, StudyKey):
        members = select_members(trials, table)
        return members.join(table, table.c.trial_id == study_trial.c.trial_id)
    return select(table).where(table.c.trial_id.in_(trials))


def _epochs(connection: Connection, trials: StudyKey | Collection[str]) -> dict[str, list[Epoch]]:
    epochs: dict[str, list[Epoch]] = {}
    for row in connection.execute(_select_rows(epoch, trials).order_by(epoch.c.epoch)):
        epochs.setdefault(row.trial_id, []).append(
            EPOCH.validate_python({"epoch": row.epoch, **row.metrics})
        )
    return epochs


def _spectra(connection: Connection, trials: StudyKey | Collection[str]) -> dict[str, Spectrum]:
    return {
        row.trial_id: row.singular_values
        for row in connection.execute(_select_rows(spectrum, trials))
    }


def _locked_row(connection: Connection, trial_id: str) -> Row[Any]:
    has_lapsed = (trial.c.lease_until <= now(connection)).label("lapsed")
    query = select(trial.c.state, trial.c.attempt, has_lapsed).where(trial.c.id == trial_id)
    row = connection.execute(query.with_for_update(key_share=True)).one_or_none()
    if row is None:
        raise KeyError(trial_id)
    return row


def _accepts(row: Row[Any], state: FinalState, attempt: int | None) -> bool:
    if row.state == "done" or state == "done":
        return bool(row.state != "done")
    if attempt is not None:
        return bool(row.state == "running" and row.attempt == attempt)
    return bool(row.state == "planned" or (row.state == "running" and row.lapsed))


def _epoch_rows(trial_id: str, epochs: Iterable[Epoch]) -> list[dict[str, Any]]:
    return [
        {
            "trial_id": trial_id,
            "epoch": metrics.epoch,
            "metrics": metrics.model_dump(exclude={"epoch"}, exclude_none=True),
        }
        for metrics in epochs
    ]


def _result_row(trial_id: str, name_at_version: str, metrics: Metrics) -> dict[str, Any]:
    name, _, version = name_at_version.rpartition("@")
    return {
        "trial_id": trial_id,
        "measurement": name,
        "version": int(version),
        "metrics": dict(metrics),
    }


def _insert_spectrum(connection: Connection, trial_id: str, values: np.ndarray) -> None:
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError(f"a spectrum must be a vector of finite numbers; got shape {values.shape}")
    connection.execute(spectrum.insert().values(trial_id=trial_id, singular_values=values))
