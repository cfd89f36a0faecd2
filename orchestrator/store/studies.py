"""Studies, their planned trials, and requests to running sweeps."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, delete, func, select, update
from sqlalchemy.engine import URL

from orchestrator.store.database import Database, execute_for, insert_new, now, storable
from orchestrator.store.records import (
    STATES,
    PlannedTrial,
    Position,
    Requests,
    RunRecord,
    StudyKey,
    StudySummary,
    TrialRow,
    TrialState,
)
from orchestrator.store.schema import STUDY, run, study, study_trial, trial
from trainables.config import canonical_json, completed, identity

OnRegister = Callable[[StudyKey, datetime, Sequence[PlannedTrial]], None]


class Studies(Database):
    """Methods of `Store` for studies, their plans, runs and stop requests."""

    def __init__(
        self, url: URL, *, on_register: OnRegister | None = None, **wait_options: Any
    ) -> None:
        super().__init__(url, **wait_options)
        self._on_register = on_register

    def register(
        self,
        key: StudyKey,
        trials: Sequence[PlannedTrial],
        *,
        instead_of: Sequence[str] | None = None,
        planned_at: datetime | None = None,
    ) -> bool:
        """Store the study's plan: its trials in this order. New trials get the state planned.

        `instead_of` holds the trial ids that the caller expects in the current plan. If the plan
        differs, nothing changes and the result is False, so only one of two processes can extend a
        plan. `planned_at` defaults to now. Raises AssertionError if a trial is listed twice or a
        new trial's id does not match its config.
        """
        assert len({planned_trial.trial_id for planned_trial in trials}) == len(trials), (
            f"a trial is planned twice in {key}"
        )
        with self.write() as connection:
            moment = planned_at or now(connection)
            study_id = _locked_study(connection, key, moment)
            query = select(study_trial).where(study_trial.c.study_id == study_id)
            rows = connection.execute(query.order_by(study_trial.c.position))
            names = tuple(rows.keys())
            stored_members = [dict(zip(names, row, strict=True)) for row in rows]
            if instead_of is not None and [row["trial_id"] for row in stored_members] != list(
                instead_of
            ):
                return False
            _insert_trials(connection, trials)
            connection.execute(
                update(study).where(study.c.id == study_id).values(planned_at=moment)
            )
            members = [
                _member(study_id, position, planned_trial)
                for position, planned_trial in enumerate(trials)
            ]
            if stored_members != members:  # planning again is common and writes little
                connection.execute(delete(study_trial).where(study_trial.c.study_id == study_id))
                if members:
                    connection.execute(study_trial.insert(), members)
        if self._on_register is not None:
            self._on_register(key, moment, trials)
        return True

    def add_trials(self, trials: Sequence[PlannedTrial]) -> None:
        """Store new trials that belong to no study; they get the state planned."""
        with self.write() as connection:
            _insert_trials(connection, trials)

    def studies(self) -> list[StudySummary]:
        """Return all study variants with their trial counts, in the order of planning."""
        members = select(study_trial.c.study_id, trial.c.state, func.count()).join(trial)
        counts: defaultdict[int, dict[TrialState, int]] = defaultdict(dict)
        with self.read() as connection:
            for study_id, state, count in connection.execute(
                members.group_by(study_trial.c.study_id, trial.c.state)
            ):
                counts[study_id][state] = count
            rows = connection.execute(select(study).order_by(study.c.planned_at, study.c.id)).all()
        return [
            StudySummary(
                key=key_of(row),
                planned_at=row.planned_at,
                counts={state: counts[row.id].get(state, 0) for state in STATES},
            )
            for row in rows
        ]

    def trials(self, key: StudyKey) -> list[TrialRow]:
        """Return the study's trials in plan order, [] for an unknown study."""
        with self.read() as connection:
            return trials_of(connection, key)

    def states(self, trial_ids: Collection[str]) -> dict[str, TrialState]:
        """Return the states of trials by id. Unknown ids are omitted."""
        with self.read() as connection:
            return column_of(connection, "state", trial_ids)

    def begin_run(self, record: RunRecord) -> int:
        """Record the start of a run; return the run's id."""
        with self.write() as connection:
            row = {
                **asdict(record),
                "packages": canonical_json(record.packages),
                "started_at": now(connection),
            }
            key = connection.execute(run.insert().values(row)).inserted_primary_key
            assert key is not None, "an insert of one row gives its key"
            return int(key[0])

    def end_run(self, run_id: int) -> None:
        """Record the end of a run. Raises KeyError for an unknown id."""
        with self.write() as connection:
            answer = connection.execute(
                update(run).where(run.c.id == run_id).values(ended_at=now(connection))
            )
            if answer.rowcount == 0:
                raise KeyError(run_id)

    def ask_to_stop(self, target: StudyKey | str) -> None:
        """Ask sweeps to stop a study or trial. Raises KeyError if the study or trial is unknown."""
        query = (
            update(study).where(is_study(target))
            if isinstance(target, StudyKey)
            else update(trial).where(trial.c.id == target)
        )
        with self.write() as connection:
            answer = connection.execute(query.values(stop_asked_at=now(connection)))
            if answer.rowcount == 0:
                raise KeyError(target)

    def requests(self, key: StudyKey, run_id: int) -> Requests:
        """Return the requests to stop that were made since the run began."""
        run_start = select(run.c.started_at).where(run.c.id == run_id).scalar_subquery()
        query = select(study.c.stop_asked_at > run_start).where(is_study(key))
        stopped_trials = select(trial.c.id).where(trial.c.stop_asked_at > run_start)
        with self.read() as connection:
            return Requests(
                stop_study=bool(connection.execute(query).scalar_one_or_none()),
                stop_trials=frozenset(connection.execute(stopped_trials).scalars()),
            )


def trials_of(
    connection: Connection, key: StudyKey, only: Collection[str] | None = None
) -> list[TrialRow]:
    """Return the study's trials in plan order. Raises ValueError if a stored config has changed."""
    query = among(select_members(key, study_trial, trial).join(trial), only)
    return [_trial_row(row) for row in connection.execute(query.order_by(study_trial.c.position))]


def _trial_row(row: Row[Any]) -> TrialRow:
    if hashlib.sha256(row.config.encode()).hexdigest() != row.trial_id:
        raise ValueError(f"the config of trial {row.trial_id[:12]} has changed")
    outcome = row.outcome or {"cause": None, "environment": {}}
    return TrialRow(
        trial_id=row.trial_id,
        name=row.name,
        position=Position(side=row.side, stage=row.stage, number=row.number) if row.side else None,
        config=completed(json.loads(row.config)),
        state=row.state,
        attempt=row.attempt,
        owner=row.owner,
        lease_until=row.lease_until,
        started_at=row.started_at,
        ended_at=row.ended_at,
        **outcome,
    )


def is_study(key: StudyKey) -> ColumnElement[bool]:
    """Return the SQL condition that selects the study with this key."""
    return and_(*(study.c[name] == value for name, value in asdict(key).items()))


def key_of(row: Row[Any]) -> StudyKey:
    """Return the study key in the `STUDY` columns of a row."""
    return StudyKey(**{column.name: getattr(row, column.name) for column in STUDY})


def select_members(key: StudyKey, *columns: Any) -> Select[Any]:
    """Return a query of `columns` for the study's trials. The caller joins other tables."""
    return select(*columns).join_from(study, study_trial).where(is_study(key))


def among(query: Select[Any], trial_ids: Collection[str] | None) -> Select[Any]:
    """Restrict a query of a study's trials to `trial_ids`, if given, and return the query."""
    return query if trial_ids is None else query.where(study_trial.c.trial_id.in_(trial_ids))


def column_of(connection: Connection, name: str, trial_ids: Collection[str]) -> dict[str, Any]:
    """Return the values of the column `name` by trial id. Unknown ids are omitted."""
    query = select(trial.c.id, trial.c[name])
    results = execute_for(connection, query, trial.c.id, trial_ids)
    return {trial_id: value for rows in results for trial_id, value in rows}


def _insert_trials(connection: Connection, trials: Sequence[PlannedTrial]) -> None:
    configs = {planned_trial.trial_id: planned_trial.config for planned_trial in trials}
    stored_states: Mapping[str, TrialState] = column_of(connection, "state", configs)
    rows = []
    # Insert in id order: studies that insert the same trials in different orders would deadlock.
    for trial_id in sorted(configs.keys() - stored_states.keys()):
        config = canonical_json(identity(configs[trial_id]))
        assert hashlib.sha256(config.encode()).hexdigest() == trial_id, (
            f"trial {trial_id} is planned with another config"
        )
        rows.append({"id": trial_id, "state": "planned", "attempt": 0, "config": config})
    insert_new(connection, trial, rows)


def _member(study_id: int, position: int, planned_trial: PlannedTrial) -> dict[str, Any]:
    tuning_columns = (
        asdict(planned_trial.position)
        if planned_trial.position
        else {"side": None, "stage": None, "number": None}
    )
    return {
        "study_id": study_id,
        "position": position,
        "trial_id": planned_trial.trial_id,
        "name": storable(planned_trial.name),
        **tuning_columns,
    }


def _locked_study(connection: Connection, key: StudyKey, moment: datetime) -> int:
    # The row stays locked, so that concurrent plans of a study do not mix.
    insert_new(connection, study, [{**asdict(key), "planned_at": moment}])
    study_id: int = connection.execute(
        select(study.c.id).where(is_study(key)).with_for_update()
    ).scalar_one()
    return study_id
