"""How far studies are, counted by the database, for whoever looks on while others work."""

from __future__ import annotations

import json
from collections import defaultdict

from sqlalchemy import Row, Select, and_, func, select

from orchestrator.store.checksums import STUDY
from orchestrator.store.database import now
from orchestrator.store.records import (
    LOST,
    STATES,
    LostTrial,
    RunningTrial,
    StudyKey,
    StudySummary,
    TrialState,
)
from orchestrator.store.schema import attempt, epoch, run, study, study_trial, trial
from orchestrator.store.studies import Studies, is_study

_KEY = (*STUDY, study_trial.c.name)


class Progress(Studies):
    """The part of the store that is asked every few seconds; see `Store`.

    Its answers are for the eye: what they count and name is not compared with checksums.
    """

    def progress(self) -> list[StudySummary]:
        """Every study variant with the count of each state, zeros included; the one planned last
        comes last."""
        members = select(study_trial.c.study_id, trial.c.state, func.count()).join(trial)
        counts: defaultdict[int, dict[TrialState, int]] = defaultdict(dict)
        with self._database.read() as connection:
            for study_id, state, count in connection.execute(
                members.group_by(study_trial.c.study_id, trial.c.state)
            ):
                counts[study_id][state] = count
            rows = connection.execute(select(study).order_by(study.c.planned_at, study.c.id)).all()
        return [
            StudySummary(
                key=_key(row),
                planned_at=row.planned_at,
                counts={state: counts[row.id].get(state, 0) for state in STATES},
            )
            for row in rows
        ]

    def running(self) -> list[RunningTrial]:
        """The trials that run or are next on a worker, of every study, each with its last epoch."""
        epochs = select(epoch.c.trial_id, func.max(epoch.c.epoch).label("epoch")).join(trial)
        last = epochs.where(trial.c.owner.is_not(None)).group_by(epoch.c.trial_id).subquery()
        query = (
            _select_trials(
                *(trial.c.owner, trial.c.lease_until, trial.c.attempt, trial.c.config),
                *(attempt.c.place, epoch.c.epoch, epoch.c.valid_loss),
            )
            .join(
                attempt,
                and_(attempt.c.trial_id == trial.c.id, attempt.c.ended_at.is_(None)),
                isouter=True,
            )
            .join(last, last.c.trial_id == trial.c.id, isouter=True)
            .join(
                epoch,
                and_(epoch.c.trial_id == trial.c.id, epoch.c.epoch == last.c.epoch),
                isouter=True,
            )
            .where(trial.c.state == "running", trial.c.owner.is_not(None))
        )
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(study.c.id, study_trial.c.position)).all()
            moment = now(connection)
        return [
            RunningTrial(
                trial_id=row.id,
                name=row.name,
                key=_key(row),
                owner=row.owner,
                place=row.place,
                attempt=row.attempt,
                epoch=row.epoch,
                valid_loss=row.valid_loss,
                epoch_count=json.loads(row.config).get("training", {}).get("epochs"),
                alive=row.lease_until > moment,
            )
            for row in rows
        ]

    def lost(self, most: int) -> list[LostTrial]:
        """The trials without a result that ended last, at most so many."""
        query = _select_trials(trial.c.state, trial.c.cause, trial.c.ended_at).where(
            trial.c.state.in_(LOST)
        )
        with self._database.read() as connection:
            rows = connection.execute(
                query.order_by(trial.c.ended_at.desc(), trial.c.id).limit(most)
            ).all()
        return [
            LostTrial(
                trial_id=row.id, name=row.name, key=_key(row), state=row.state, cause=row.cause
            )
            for row in rows
        ]

    def lost_count(self) -> int:
        """How many trials have no result; one of several studies counts once."""
        query = (
            select(func.count(trial.c.id.distinct()))
            .join_from(study_trial, trial)
            .where(trial.c.state.in_(LOST))
        )
        with self._database.read() as connection:
            return int(connection.execute(query).scalar_one())

    def ended_in_run(self, key: StudyKey) -> tuple[int, float]:
        """How many of the study's trials the newest run of them that goes on has brought to an end,
        and how many seconds ago it began; (0, 0.0) where there is none."""
        query = (
            select(func.count(), run.c.started_at)
            .join_from(study, study_trial)
            .join(trial)
            .join(run, run.c.id == trial.c.run_id)
            .where(is_study(key), run.c.ended_at.is_(None))
        )
        with self._database.read() as connection:
            newest = query.group_by(run.c.id, run.c.started_at).order_by(
                run.c.started_at.desc(), run.c.id.desc()
            )
            row = connection.execute(newest.limit(1)).one_or_none()
            return (0, 0.0) if row is None else (row[0], (now(connection) - row[1]).total_seconds())

    def versions(self, key: StudyKey) -> dict[str, tuple[object, ...]]:
        """By trial id in plan order, what differs once the store holds something else of the
        trial's end."""
        columns = (trial.c.state, trial.c.attempt, trial.c.checksum, trial.c.results_checksum)
        query = (
            select(trial.c.id, *columns)
            .join_from(study, study_trial)
            .join(trial)
            .where(is_study(key))
        )
        with self._database.read() as connection:
            return {
                row[0]: tuple(row[1:])
                for row in connection.execute(query.order_by(study_trial.c.position))
            }

    def studies_of(self, trial_id_start: str) -> list[tuple[str, StudyKey]]:
        """The trials, by id, whose ids begin so, each with every study that has it."""
        query = (
            _select_trials()
            .where(trial.c.id.startswith(trial_id_start, autoescape=True))
            .order_by(study.c.id)
        )
        with self._database.read() as connection:
            return [(row.id, _key(row)) for row in connection.execute(query)]


def _select_trials(*columns: object) -> Select[tuple[object, ...]]:
    """A query over the trials of all studies: id, name in the study, the study and these
    columns."""
    return select(trial.c.id, *_KEY, *columns).join_from(study, study_trial).join(trial)


def _key(row: Row[tuple[object, ...]]) -> StudyKey:
    return StudyKey(**{column.name: getattr(row, column.name) for column in STUDY})
