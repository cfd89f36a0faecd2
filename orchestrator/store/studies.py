"""Which trials exist, which study plans them, and what people ask of runs under way."""

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

from orchestrator.store.database import Database, chunks, insert_new, now, storable
from orchestrator.store.records import (
    STATES,
    Place,
    PlannedTrial,
    Requests,
    RunRecord,
    StudyKey,
    StudySummary,
    TrialRow,
    TrialState,
)
from orchestrator.store.schema import STUDY, canonical_json, run, study, study_trial, trial
from trainables.config import completed, identity

OnRegister = Callable[[StudyKey, datetime, Sequence[PlannedTrial]], None]


class Studies(Database):
    """The part of the store about studies and the runs of them; see `Store`."""

    def __init__(self, url: URL, *, on_register: OnRegister | None = None, **waiting: Any) -> None:
        """`on_register` is called after a study was registered: its key, when, its trials;
        `waiting`: see `Database`."""
        super().__init__(url, **waiting)
        self._on_register = on_register

    def register(
        self,
        key: StudyKey,
        trials: Sequence[PlannedTrial],
        *,
        instead_of: Sequence[str] | None = None,
        planned_at: datetime | None = None,
    ) -> bool:
        """Make the study's membership exactly `trials`, in this order; new trials become planned.

        With `instead_of` only if the members are these trial ids at that moment: of two processes
        that plan further trials from the same members, one does. Returns whether the membership is
        `trials` now; if not, it stays as it was. A trial belongs to as many studies as plan it,
        and is never deleted. `planned_at` is now unless it is given. Raises AssertionError if a new
        trial's id is not that of its config, or a trial is listed twice."""
        assert len({planned.trial_id for planned in trials}) == len(trials), (
            f"a trial is planned twice in {key}"
        )
        with self.write() as connection:
            moment = planned_at or now(connection)
            study_id = _locked_study(connection, key, moment)
            query = select(study_trial).where(study_trial.c.study_id == study_id)
            rows = connection.execute(query.order_by(study_trial.c.position))
            names = tuple(rows.keys())
            stored = [dict(zip(names, row, strict=True)) for row in rows]
            if instead_of is not None and [row["trial_id"] for row in stored] != list(instead_of):
                return False
            _insert_trials(connection, trials)
            connection.execute(
                update(study).where(study.c.id == study_id).values(planned_at=moment)
            )
            members = [
                _member(study_id, position, planned) for position, planned in enumerate(trials)
            ]
            if stored != members:  # planning a study again, the common case, writes next to nothing
                connection.execute(delete(study_trial).where(study_trial.c.study_id == study_id))
                if members:
                    connection.execute(study_trial.insert(), members)
        if self._on_register is not None:
            self._on_register(key, moment, trials)
        return True

    def add_trials(self, trials: Sequence[PlannedTrial]) -> None:
        """Make trials planned that the store does not have yet, in no study."""
        with self.write() as connection:
            _insert_trials(connection, trials)

    def studies(self) -> list[StudySummary]:
        """Return every study variant with the count of each state, zeros included, in the order in
        which they were planned last."""
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
        """Return the study's trials in plan order; none for a study that was never registered."""
        with self.read() as connection:
            return trials_of(connection, key)

    def states(self, trial_ids: Collection[str]) -> dict[str, TrialState]:
        """Return the state of each of these trials that the store has."""
        with self.read() as connection:
            return column_of(connection, "state", trial_ids)

    def begin_run(self, record: RunRecord) -> int:
        """Record that a run of the command starts now; returns its id."""
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
        """Record that a run ends now. Raises KeyError for an unknown id."""
        with self.write() as connection:
            ended = connection.execute(
                update(run).where(run.c.id == run_id).values(ended_at=now(connection))
            )
            if ended.rowcount == 0:
                raise KeyError(run_id)

    def ask_to_stop(self, target: StudyKey | str) -> None:
        """Ask the runs under way of a study, or of the trial of this id, to stop it. Raises
        KeyError if the store does not have it."""
        query = (
            update(study).where(is_study(target))
            if isinstance(target, StudyKey)
            else update(trial).where(trial.c.id == target)
        )
        with self.write() as connection:
            asked = connection.execute(query.values(stop_asked_at=now(connection)))
            if asked.rowcount == 0:
                raise KeyError(target)

    def requests(self, key: StudyKey, run_id: int) -> Requests:
        """Return what was asked since the run began, by the store's clock."""
        began = select(run.c.started_at).where(run.c.id == run_id).scalar_subquery()
        query = select(study.c.stop_asked_at > began).where(is_study(key))
        stopped = select(trial.c.id).where(trial.c.stop_asked_at > began)
        with self.read() as connection:
            return Requests(
                stop_study=bool(connection.execute(query).scalar_one_or_none()),
                stop_trials=frozenset(connection.execute(stopped).scalars()),
            )


def trials_of(
    connection: Connection, key: StudyKey, only: Collection[str] | None = None
) -> list[TrialRow]:
    """Return the study's trials in plan order, of `only` these ids. Raises ValueError for a config
    that has changed."""
    query = among(select_members(key, study_trial, trial).join(trial), only)
    return [_trial_row(row) for row in connection.execute(query.order_by(study_trial.c.position))]


def _trial_row(row: Row[Any]) -> TrialRow:
    if hashlib.sha256(row.config.encode()).hexdigest() != row.trial_id:
        raise ValueError(f"the config of trial {row.trial_id[:12]} has changed")
    ended = row.outcome or {"cause": None, "environment": {}}
    return TrialRow(
        trial_id=row.trial_id,
        name=row.name,
        place=Place(side=row.side, stage=row.stage, number=row.number) if row.side else None,
        config=completed(json.loads(row.config)),
        state=row.state,
        attempt=row.attempt,
        owner=row.owner,
        lease_until=row.lease_until,
        started_at=row.started_at,
        ended_at=row.ended_at,
        **ended,
    )


def is_study(key: StudyKey) -> ColumnElement[bool]:
    """Return the condition that picks a study variant."""
    return and_(*(study.c[name] == value for name, value in asdict(key).items()))


def key_of(row: Row[Any]) -> StudyKey:
    """Return the key of the study whose columns `STUDY` are in a row."""
    return StudyKey(**{column.name: getattr(row, column.name) for column in STUDY})


def select_members(key: StudyKey, *columns: Any) -> Select[Any]:
    """Return a query for columns of a study's members, to be joined with their tables."""
    return select(*columns).join_from(study, study_trial).where(is_study(key))


def among(query: Select[Any], trial_ids: Collection[str] | None) -> Select[Any]:
    """Return a query over a study's members for these trial ids alone; for all if None."""
    return query if trial_ids is None else query.where(study_trial.c.trial_id.in_(trial_ids))


def column_of(connection: Connection, name: str, trial_ids: Collection[str]) -> dict[str, Any]:
    """Return one column of those of these trials that the store has, by their ids."""
    values: dict[str, Any] = {}
    for chunk in chunks(trial_ids):
        query = select(trial.c.id, trial.c[name]).where(trial.c.id.in_(chunk))
        values.update((trial_id, value) for trial_id, value in connection.execute(query))
    return values


def _insert_trials(connection: Connection, trials: Sequence[PlannedTrial]) -> None:
    configs = {planned.trial_id: planned.config for planned in trials}
    stored: Mapping[str, TrialState] = column_of(connection, "state", configs)
    rows = []
    # In the order of their ids: two studies that insert the same trials in different orders would
    # block each other.
    for trial_id in sorted(configs.keys() - stored.keys()):
        config = canonical_json(identity(configs[trial_id]))
        assert hashlib.sha256(config.encode()).hexdigest() == trial_id, (
            f"trial {trial_id} is planned with another config"
        )
        rows.append({"id": trial_id, "state": "planned", "attempt": 0, "config": config})
    insert_new(connection, trial, rows)


def _member(study_id: int, position: int, planned: PlannedTrial) -> dict[str, Any]:
    """The row of a planned trial in `study_trial`."""
    place = (
        asdict(planned.place) if planned.place else {"side": None, "stage": None, "number": None}
    )
    return {
        "study_id": study_id,
        "position": position,
        "trial_id": planned.trial_id,
        "name": storable(planned.name),
        **place,
    }


def _locked_study(connection: Connection, key: StudyKey, moment: datetime) -> int:
    """The study's id. Its row stays locked, so that a study planned twice at the same time has one
    plan, not a mixture."""
    insert_new(connection, study, [{**asdict(key), "planned_at": moment}])
    study_id: int = connection.execute(
        select(study.c.id).where(is_study(key)).with_for_update()
    ).scalar_one()
    return study_id
