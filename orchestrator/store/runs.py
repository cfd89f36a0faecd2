"""Runs of the command, and what people ask of those that run elsewhere."""

from __future__ import annotations

from dataclasses import asdict

from sqlalchemy import select, update

from orchestrator.store.database import Transactions, now
from orchestrator.store.records import Requests, RunRecord, StudyKey
from orchestrator.store.schema import run, stop_request, study, trial
from orchestrator.store.studies import canonical_json, is_study


class Runs(Transactions):
    """The part of the store about runs; see `Store`."""

    def begin_run(self, record: RunRecord) -> int:
        """Record that a run of the command starts now; returns its id."""
        with self._database.write() as connection:
            row = {**asdict(record), "packages": canonical_json(record.packages), "started_at": now(connection)}
            key = connection.execute(run.insert().values(row)).inserted_primary_key
            assert key is not None, "an insert of one row gives its key"
            return int(key[0])

    def end_run(self, run_id: int) -> None:
        """Record that a run ends now. Raises KeyError for an id that is none."""
        with self._database.write() as connection:
            ended = connection.execute(update(run).where(run.c.id == run_id).values(ended_at=now(connection)))
            if ended.rowcount == 0:
                raise KeyError(run_id)

    def ask_to_stop(self, target: StudyKey | str) -> None:
        """Ask whoever runs the study, or the trial of this id, to stop it; runs that begin later are not meant."""
        if isinstance(target, StudyKey):
            column, query = "study_id", select(study.c.id).where(is_study(target))
        else:
            column, query = "trial_id", select(trial.c.id).where(trial.c.id == target)
        with self._database.write() as connection:
            key = connection.execute(query).scalar_one_or_none()
            if key is None:
                raise KeyError(target)
            connection.execute(stop_request.insert().values({column: key, "asked_at": now(connection)}))

    def requests(self, key: StudyKey, run_id: int) -> Requests:
        """What was asked since the run began, by the store's clock, and when the study was planned last."""
        began = select(run.c.started_at).where(run.c.id == run_id).scalar_subquery()
        query = select(stop_request.c.study_id, stop_request.c.trial_id).where(stop_request.c.asked_at > began)
        with self._database.read() as connection:
            planned = connection.execute(select(study.c.id, study.c.planned_at).where(is_study(key))).one_or_none()
            if planned is None:
                raise KeyError(key)
            rows = connection.execute(query).all()
        return Requests(
            planned_at=planned.planned_at,
            stop_study=any(row.study_id == planned.id for row in rows),
            stop_trials=frozenset(row.trial_id for row in rows if row.trial_id is not None),
        )
