"""The store over SQLite or PostgreSQL: each method is one transaction around the function that does its work."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orchestrator.store import claims, membership, outcomes, requests
from orchestrator.store.database import Database
from orchestrator.store.interface import Store
from orchestrator.store.records import (
    LOST,
    PlannedTrial,
    Requests,
    RunRecord,
    StudyKey,
    StudySummary,
    TrialRow,
    TrialState,
)
from trainables.trial_folder.outcome import EpochMetrics, Metric, TrialOutcome

if TYPE_CHECKING:
    import numpy as np


class SqlStore(Store):
    """A `Store` in a database whose schema is the newest; `orchestrator.store.opening.open_store` makes one."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def register(
        self, key: StudyKey, trials: Sequence[PlannedTrial], *, instead_of: Sequence[str] | None = None
    ) -> bool:
        with self._database.write() as connection:
            return membership.register(connection, key, trials, instead_of)

    def studies(self) -> list[StudySummary]:
        with self._database.read() as connection:
            return membership.studies(connection)

    def trials(self, key: StudyKey) -> list[TrialRow]:
        with self._database.read() as connection:
            return membership.trials(connection, key)

    def states(self, trial_ids: Collection[str]) -> dict[str, TrialState]:
        with self._database.read() as connection:
            return membership.states(connection, trial_ids)

    def lacking(self, key: StudyKey, measurements: Collection[str]) -> dict[str, list[str]]:
        with self._database.read() as connection:
            return outcomes.lacking(connection, key, measurements)

    def begin_run(self, run: RunRecord) -> int:
        with self._database.write() as connection:
            return outcomes.begin_run(connection, run)

    def end_run(self, run_id: int) -> None:
        with self._database.write() as connection:
            outcomes.end_run(connection, run_id)

    def claim(self, trial_ids: Sequence[str], *, owner: str, lease_s: float) -> list[str]:
        with self._database.write() as connection:
            return claims.claim(connection, trial_ids, owner=owner, lease_s=lease_s)

    def renew(self, owner: str, lease_s: float) -> int:
        with self._database.write() as connection:
            return claims.renew(connection, owner, lease_s)

    def release(self, trial_ids: Collection[str], *, owner: str) -> int:
        with self._database.write() as connection:
            return claims.release(connection, trial_ids, owner=owner)

    def expire(self, owner: str) -> int:
        with self._database.write() as connection:
            return claims.expire(connection, owner)

    def owners(self) -> list[str]:
        with self._database.read() as connection:
            return claims.owners(connection)

    def ask_to_stop(self, what: StudyKey | str) -> None:
        with self._database.write() as connection:
            requests.ask_to_stop(connection, what)

    def requests(self, key: StudyKey, run_id: int) -> Requests:
        with self._database.read() as connection:
            return requests.requests(connection, key, run_id)

    def record_epoch(self, trial_id: str, epoch: EpochMetrics) -> None:
        self.record_epochs({trial_id: [epoch]})

    def record_epochs(self, epochs: Mapping[str, Sequence[EpochMetrics]]) -> None:
        with self._database.write() as connection:
            outcomes.record_epochs(connection, epochs)

    def record(self, outcome: TrialOutcome, *, run_id: int, spectrum: np.ndarray | None) -> bool:
        with self._database.write() as connection:
            return outcomes.record(connection, outcome, run_id, spectrum)

    def add_measurement(
        self,
        trial_id: str,
        name_at_version: str,
        metrics: Mapping[str, Metric],
        *,
        run_id: int,
        spectrum: np.ndarray | None = None,
    ) -> bool:
        with self._database.write() as connection:
            return outcomes.add_measurement(
                connection, trial_id, name_at_version, metrics, run_id=run_id, singular_values=spectrum
            )

    def fail(self, trial_id: str, *, cause: str, run_id: int) -> bool:
        with self._database.write() as connection:
            return outcomes.fail(connection, trial_id, cause=cause, run_id=run_id)

    def reset(self, trial_ids: Collection[str], states: Sequence[TrialState] = LOST) -> list[str]:
        with self._database.write() as connection:
            return claims.reset(connection, trial_ids, states)

    def results(self, key: StudyKey) -> list[dict[str, Any]]:
        with self._database.read() as connection:
            return outcomes.results(connection, key)

    def epochs(self, trial_id: str) -> list[EpochMetrics]:
        with self._database.read() as connection:
            return outcomes.epochs(connection, trial_id)

    def spectrum(self, trial_id: str) -> np.ndarray | None:
        with self._database.read() as connection:
            return outcomes.read_spectrum(connection, trial_id)

    def spectra(self, key: StudyKey) -> dict[str, np.ndarray]:
        with self._database.read() as connection:
            return outcomes.spectra(connection, key)

    def environment(self, trial_id: str) -> dict[str, str]:
        with self._database.read() as connection:
            return outcomes.environment(connection, trial_id)

    def environments(self, key: StudyKey) -> dict[str, dict[str, str]]:
        with self._database.read() as connection:
            return outcomes.environments(connection, key)

    def close(self) -> None:
        self._database.close()
