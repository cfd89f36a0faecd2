"""Queries about running, failed and diverged trials, for pages that show progress."""

from __future__ import annotations

import json

from sqlalchemy import Select, and_, func, or_, select

from orchestrator.store.database import Database, now
from orchestrator.store.records import LOST, LostTrial, RunningTrial, StudyKey
from orchestrator.store.schema import STUDY, attempt, epoch, result, run, study, study_trial, trial
from orchestrator.store.studies import is_study, key_of, select_members
from trainables.config import epoch_count
from trainables.trial_folder import EPOCH


class Progress(Database):
    """Methods of `Store` for pages and commands that show progress."""

    def running(self) -> list[RunningTrial]:
        """Return the claimed trials with their last epochs; a trial of two studies occurs twice."""
        epochs = select(func.max(epoch.c.epoch)).where(epoch.c.trial_id == trial.c.id)
        last_epoch = epochs.correlate(trial).scalar_subquery()
        query = (
            _select_trials(
                *(trial.c.owner, trial.c.lease_until, trial.c.attempt, trial.c.config),
                *(attempt.c.place, epoch.c.epoch, epoch.c.metrics),
            )
            .join(
                attempt,
                and_(attempt.c.trial_id == trial.c.id, attempt.c.ended_at.is_(None)),
                isouter=True,
            )
            .join(
                epoch,
                and_(epoch.c.trial_id == trial.c.id, epoch.c.epoch == last_epoch),
                isouter=True,
            )
            .where(trial.c.state == "running", trial.c.owner.is_not(None))
        )
        with self.read() as connection:
            rows = connection.execute(query.order_by(study.c.id, study_trial.c.position)).all()
            moment = now(connection)
            return [
                RunningTrial(
                    trial_id=row.id,
                    name=row.name,
                    key=key_of(row),
                    owner=row.owner,
                    host=row.place,
                    attempt=row.attempt,
                    epoch=row.epoch,
                    metrics=EPOCH.validate_python({"epoch": row.epoch, **row.metrics}).numbers
                    if row.metrics
                    else {},
                    epoch_count=epoch_count(json.loads(row.config)),
                    alive=row.lease_until > moment,
                )
                for row in rows
            ]

    def lost(self) -> list[LostTrial]:
        """Return failed and diverged trials, latest first; a trial of two studies occurs twice."""
        is_last = and_(attempt.c.trial_id == trial.c.id, attempt.c.ended_at == trial.c.ended_at)
        query = (
            _select_trials(trial.c.state, trial.c.outcome, attempt.c.place)
            .join(attempt, is_last, isouter=True)
            .where(trial.c.state.in_(LOST))
        )
        with self.read() as connection:
            rows = connection.execute(query.order_by(trial.c.ended_at.desc(), trial.c.id)).all()
        return [
            LostTrial(
                trial_id=row.id,
                name=row.name,
                key=key_of(row),
                state=row.state,
                cause=row.outcome["cause"],
                host=row.place,
            )
            for row in rows
        ]

    def ended_in_run(self, key: StudyKey) -> tuple[int, float]:
        """Return how many trials the study's current run has ended, and the run's age in s.

        The current run is the newest unfinished run that has ended a trial. Without one, returns
        (0, 0.0).
        """
        query = (
            select(func.count(), run.c.started_at)
            .join_from(study, study_trial)
            .join(trial)
            .join(run, run.c.id == trial.c.run_id)
            .where(is_study(key), run.c.ended_at.is_(None))
        )
        with self.read() as connection:
            newest_run = query.group_by(run.c.id, run.c.started_at).order_by(
                run.c.started_at.desc(), run.c.id.desc()
            )
            row = connection.execute(newest_run.limit(1)).one_or_none()
            return (0, 0.0) if row is None else (row[0], (now(connection) - row[1]).total_seconds())

    def versions(self, key: StudyKey) -> dict[str, tuple[object, ...]]:
        """Return a tuple for each trial id, in plan order.

        A trial's tuple changes when the store records its end or a new measurement.
        """
        query = (
            select_members(
                key, trial.c.id, trial.c.state, trial.c.attempt, func.count(result.c.version)
            )
            .join(trial)
            .join(result, result.c.trial_id == trial.c.id, isouter=True)
            .group_by(trial.c.id, trial.c.state, trial.c.attempt, study_trial.c.position)
        )
        with self.read() as connection:
            rows = connection.execute(query.order_by(study_trial.c.position))
            return {row[0]: tuple(row[1:]) for row in rows}

    def studies_of(self, start: str) -> list[tuple[str, StudyKey]]:
        """Return (trial id, study) pairs of trials named `start` or whose ids begin with it."""
        query = (
            _select_trials()
            .where(
                or_(
                    trial.c.id.startswith(start, autoescape=True),
                    study_trial.c.name == start,
                )
            )
            .order_by(study.c.id)
        )
        with self.read() as connection:
            return [(row.id, key_of(row)) for row in connection.execute(query)]


def _select_trials(*columns: object) -> Select[tuple[object, ...]]:
    return (
        select(trial.c.id, study_trial.c.name, *STUDY, *columns)
        .join_from(study, study_trial)
        .join(trial)
    )
