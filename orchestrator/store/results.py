"""What trials came to, read."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection
from typing import Any

import numpy as np
from sqlalchemy import select

from orchestrator.store.database import Transactions
from orchestrator.store.recording import name_and_version
from orchestrator.store.records import StudyKey
from orchestrator.store.schema import epoch, result, spectrum, study, study_trial, trial
from orchestrator.store.studies import is_study, read_trials
from trainables.trial_folder import EpochMetrics, Metric


class Results(Transactions):
    """The part of the store that gives results; see `Store`."""

    def results(self, key: StudyKey) -> list[dict[str, Any]]:
        """One dict a trial in plan order, for a table.

        Keys: those of `TrialRow`, and metrics (flat, over all measurements; of several versions of one measurement,
        the latest has the last word).
        """
        query = (
            select(result.c.trial_id, result.c.metrics)
            .join_from(study, study_trial)
            .join(result, result.c.trial_id == study_trial.c.trial_id)
            .where(is_study(key))
            .order_by(result.c.version)
        )
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
            select(study_trial.c.trial_id, result.c.measurement, result.c.version)
            .join_from(study, study_trial)
            .join(trial)
            .join(result, result.c.trial_id == study_trial.c.trial_id, isouter=True)
            .where(is_study(key) & (trial.c.state == "done"))
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
        fields = [epoch.c[name] for name in EpochMetrics.model_fields]
        query = select(*fields).where(epoch.c.trial_id == trial_id).order_by(epoch.c.epoch)
        with self._database.read() as connection:
            return [EpochMetrics(**row) for row in connection.execute(query).mappings()]

    def spectra(self, key: StudyKey) -> dict[str, np.ndarray]:
        """The singular values of those of the study's trials that have some, float64, by trial id."""
        query = (
            select(spectrum.c.trial_id, spectrum.c.singular_values)
            .join_from(study, study_trial)
            .join(spectrum, spectrum.c.trial_id == study_trial.c.trial_id)
            .where(is_study(key))
        )
        with self._database.read() as connection:
            return {
                row.trial_id: np.frombuffer(row.singular_values, dtype="<f8").astype(np.float64)
                for row in connection.execute(query)
            }

    def environments(self, key: StudyKey) -> dict[str, dict[str, str]]:
        """Code and package versions, host and device of the recorded attempts, by trial id."""
        query = (
            select(trial.c.id, trial.c.environment)
            .join_from(study, study_trial)
            .join(trial)
            .where(is_study(key), trial.c.environment.is_not(None))
        )
        with self._database.read() as connection:
            return {row.id: json.loads(row.environment) for row in connection.execute(query)}
