"""What trials came to, read; whatever changed since it was recorded is refused."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection
from datetime import datetime
from typing import Any

import numpy as np
from sqlalchemy import Connection, Select, select

from orchestrator.store.checksums import (
    END,
    EPOCH,
    RESULT,
    Values,
    by_first_column,
    rows_checksum,
    spectrum_checksum,
)
from orchestrator.store.records import OPEN, StudyKey, metrics_of, name_and_version
from orchestrator.store.schema import epoch, result, spectrum, study_trial, trial
from orchestrator.store.studies import Studies, among, change_of, select_members
from trainables.trial_folder import EpochMetrics, Metric

_EPOCH_NAMES = [column.name for column in EPOCH]


class Results(Studies):
    """The part of the store that gives results; see `Store`."""

    def results(self, key: StudyKey, only: Collection[str] | None = None) -> list[dict[str, Any]]:
        """One dict a trial in plan order, for a table; of `only` these trial ids, of all for None.

        Keys: those of `TrialRow`, and metrics (flat, over all measurements; of several versions of
        one measurement, the latest has the last word)."""
        measured = among(select_members(key, result.c.trial_id, *RESULT), only)
        query = measured.join(result, result.c.trial_id == study_trial.c.trial_id).order_by(
            result.c.version
        )
        checksums = among(_select_checksums(key, trial.c.results_checksum), only)
        with self._database.read() as connection:
            rows = self._trials(connection, key, only)
            stored = by_first_column(connection.execute(query).all())
            self._refuse(
                [
                    change_of("results", row.trial_id)
                    for row in connection.execute(checksums)
                    if row.results_checksum != rows_checksum(row.trial_id, stored[row.trial_id])
                ]
            )
            metrics: defaultdict[str, dict[str, Metric]] = defaultdict(dict)
            for trial_id, results in stored.items():
                for _, _, text in results:
                    metrics[trial_id].update(metrics_of(text))
        return [{**vars(row), "metrics": metrics[row.trial_id]} for row in rows]

    def lacking(self, key: StudyKey, measurements: Collection[str]) -> dict[str, list[str]]:
        """Which of these measurements ("name@version") each done trial of the study has not got: by
        trial id in plan order, the names in the given order, trials that have all of them left out.
        Reads no metrics.

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
        query = (
            select(epoch.c.trial_id, *EPOCH)
            .where(epoch.c.trial_id == trial_id)
            .order_by(epoch.c.epoch)
        )
        checksum = select(trial.c.id.label("trial_id"), trial.c.state, trial.c.epochs_checksum)
        with self._database.read() as connection:
            return self._epochs(connection, query, checksum.where(trial.c.id == trial_id)).get(
                trial_id, []
            )

    def epochs_by_trial(self, key: StudyKey) -> dict[str, list[EpochMetrics]]:
        """The epochs in order of those of the study's trials that have some, by trial id."""
        members = select_members(key, epoch.c.trial_id, *EPOCH)
        query = members.join(epoch, epoch.c.trial_id == study_trial.c.trial_id).order_by(
            epoch.c.epoch
        )
        with self._database.read() as connection:
            return self._epochs(connection, query, _select_checksums(key, trial.c.epochs_checksum))

    def _epochs(
        self, connection: Connection, query: Select[Any], checksums: Select[Any]
    ) -> dict[str, list[EpochMetrics]]:
        """Of the trials in both; those of a trial that has ended are compared with their
        checksum."""
        stored = by_first_column(connection.execute(query).all())
        self._refuse(
            [
                change_of("epochs", row.trial_id)
                for row in connection.execute(checksums)
                if row.state not in OPEN
                and row.epochs_checksum != rows_checksum(row.trial_id, stored[row.trial_id])
            ]
        )
        return {
            trial_id: [epoch_metrics(values) for values in rows]
            for trial_id, rows in stored.items()
            if rows
        }

    def spectrum(self, trial_id: str) -> np.ndarray | None:
        """The trial's singular values, float64; None where it has none."""
        columns = (
            trial.c.id.label("trial_id"),
            trial.c.spectrum_checksum,
            spectrum.c.singular_values,
        )
        return self._spectra(select(*columns).select_from(trial).where(trial.c.id == trial_id)).get(
            trial_id
        )

    def spectra(self, key: StudyKey) -> dict[str, np.ndarray]:
        """The singular values of those of the study's trials that have some, float64, by trial
        id."""
        return self._spectra(
            _select_checksums(key, trial.c.spectrum_checksum, spectrum.c.singular_values)
        )

    def _spectra(self, query: Select[Any]) -> dict[str, np.ndarray]:
        with self._database.read() as connection:
            rows = connection.execute(query.join(spectrum, isouter=True)).all()
            self._refuse(
                [
                    change_of("spectrum", row.trial_id)
                    for row in rows
                    if row.spectrum_checksum != spectrum_checksum(row.trial_id, row.singular_values)
                ]
            )
            return {
                row.trial_id: np.frombuffer(row.singular_values, dtype="<f8").astype(np.float64)
                for row in rows
                if row.singular_values is not None
            }

    def times(self, key: StudyKey) -> dict[str, tuple[datetime, datetime]]:
        """When each of the study's trials that have ended was claimed first, and when it ended, by
        trial id."""
        query = select_members(key, trial.c.id, trial.c.started_at, trial.c.ended_at).join(trial)
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        return {
            row.id: (row.started_at, row.ended_at)
            for row in rows
            if row.started_at and row.ended_at
        }

    def environments(
        self, key: StudyKey, only: Collection[str] | None = None
    ) -> dict[str, dict[str, str]]:
        """Code and package versions, host and device of the recorded attempts, by trial id; of
        `only` these ids."""
        query = among(select_members(key, trial.c.checksum, *END).join(trial), only)
        with self._database.read() as connection:
            rows = connection.execute(query).all()
            self._check_ends(rows)
            return {
                row.id: json.loads(row.environment) for row in rows if row.environment is not None
            }


def epoch_metrics(values: Values) -> EpochMetrics:
    """An epoch as it is stored, by its columns `EPOCH`. Raises ValueError for what no program can
    have recorded."""
    return EpochMetrics(**dict(zip(_EPOCH_NAMES, values, strict=True)))


def _select_checksums(key: StudyKey, *columns: Any) -> Select[Any]:
    """A query for columns of the study's trials, beside whose they are and their states."""
    return select_members(key, study_trial.c.trial_id, trial.c.state, *columns).join(trial)
