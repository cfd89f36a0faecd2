"""Which trials exist and which study plans them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, and_, delete, func, select, update

from orchestrator.store.database import Transactions, chunks, insert_new, now
from orchestrator.store.records import STATES, Place, PlannedTrial, StudyKey, StudySummary, TrialRow, TrialState
from orchestrator.store.schema import study, study_trial, trial


class Studies(Transactions):
    """The part of the store that plans; see `Store`."""

    def register(
        self, key: StudyKey, trials: Sequence[PlannedTrial], *, instead_of: Sequence[str] | None = None
    ) -> bool:
        """Make the study's membership exactly `trials`, in this order; new trials become planned.

        With `instead_of` only where the members are these trial ids at that moment: of two processes that plan further
        trials from the same members, one does. Returns whether the membership is `trials` now; where not, it stays as
        it was. A trial belongs to as many studies as plan it, and is never deleted. Raises AssertionError where a
        stored `trial_id` comes with another config, or comes twice.
        """
        configs = {planned.trial_id: canonical_json(planned.config) for planned in trials}
        assert len(configs) == len(trials), f"a trial is planned twice in {key}"
        with self._database.write() as connection:
            study_id = _locked_study(connection, key)
            stored = _members(connection, study_id)
            if instead_of is not None and [member.trial_id for member in stored] != list(instead_of):
                return False
            connection.execute(update(study).where(study.c.id == study_id).values(planned_at=now(connection)))
            _insert_trials(connection, configs)
            planned = [_Member(place, trial.trial_id, trial.name, trial.place) for place, trial in enumerate(trials)]
            if stored != planned:  # planning a study again, the common case, writes next to nothing
                _replace_members(connection, study_id, planned)
            return True

    def studies(self) -> list[StudySummary]:
        """Every study variant with the count of each state, zeros included; the one planned last comes last."""
        counts = (
            select(study_trial.c.study_id, trial.c.state, func.count().label("trials"))
            .join_from(study_trial, trial)
            .group_by(study_trial.c.study_id, trial.c.state)
            .subquery()
        )
        query = (
            select(study, counts.c.state, counts.c.trials)
            .join_from(study, counts, study.c.id == counts.c.study_id, isouter=True)
            .order_by(study.c.planned_at, study.c.id)
        )
        summaries: dict[int, StudySummary] = {}
        with self._database.read() as connection:
            for row in connection.execute(query):
                key = StudyKey(study=row.study, scale=row.scale, corpus=row.corpus, overrides=row.overrides)
                empty: dict[TrialState, int] = dict.fromkeys(STATES, 0)
                summary = summaries.setdefault(row.id, StudySummary(key=key, planned_at=row.planned_at, counts=empty))
                if row.state is not None:
                    summary.counts[row.state] = row.trials
        return list(summaries.values())

    def trials(self, key: StudyKey) -> list[TrialRow]:
        """The study's trials in plan order; empty for a study that was never registered."""
        with self._database.read() as connection:
            return read_trials(connection, key)

    def states(self, trial_ids: Collection[str]) -> dict[str, TrialState]:
        """The state of each of these trials that the store has."""
        with self._database.read() as connection:
            return _column(connection, "state", trial_ids)


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no white space, as `TrialConfig.canonical_json` writes it."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def is_study(key: StudyKey) -> ColumnElement[bool]:
    """The condition that picks a study variant."""
    return and_(*(study.c[name] == value for name, value in asdict(key).items()))


def read_trials(connection: Connection, key: StudyKey) -> list[TrialRow]:
    """`Store.trials` inside the caller's transaction."""
    query = (
        select(trial, *(study_trial.c[column] for column in ("name", "side", "stage", "number")))
        .join_from(study, study_trial)
        .join(trial)
        .where(is_study(key))
        .order_by(study_trial.c.position)
    )
    return [
        TrialRow(
            trial_id=row.id,
            name=row.name,
            place=_place(row),
            config=json.loads(row.config),
            state=row.state,
            attempt=row.attempt,
            owner=row.owner,
            lease_until=row.lease_until,
            cause=row.cause,
        )
        for row in connection.execute(query)
    ]


class _Member(NamedTuple):
    position: int
    trial_id: str
    name: str
    place: Place | None


def _locked_study(connection: Connection, key: StudyKey) -> int:
    """The study's id. Its row stays locked, so that a study planned twice at the same time has one plan, not a
    mixture."""
    insert_new(connection, study, [{**asdict(key), "planned_at": now(connection)}])
    study_id: int = connection.execute(select(study.c.id).where(is_study(key)).with_for_update()).scalar_one()
    return study_id


def _insert_trials(connection: Connection, configs: Mapping[str, str]) -> None:
    moment = now(connection)
    stored = _column(connection, "config", configs)
    # In the order of their ids: two studies that insert the same trials in different orders would block each other.
    new_ids = sorted(configs.keys() - stored.keys())
    rows = [
        {"id": trial_id, "state": "planned", "attempt": 0, "planned_at": moment, "config": configs[trial_id]}
        for trial_id in new_ids
    ]
    insert_new(connection, trial, rows)
    stored |= _column(connection, "config", new_ids)  # another process may have inserted some of them just before
    for trial_id, config in configs.items():
        assert stored[trial_id] == config, f"trial {trial_id} is stored with another config: {stored[trial_id]}"


def _column(connection: Connection, name: str, trial_ids: Collection[str]) -> dict[str, Any]:
    """One column of those of these trials that the store has, by their ids."""
    values: dict[str, Any] = {}
    for chunk in chunks(trial_ids):
        query = select(trial.c.id, trial.c[name]).where(trial.c.id.in_(chunk))
        values.update((trial_id, value) for trial_id, value in connection.execute(query))
    return values


def _members(connection: Connection, study_id: int) -> list[_Member]:
    query = select(study_trial).where(study_trial.c.study_id == study_id).order_by(study_trial.c.position)
    return [_Member(row.position, row.trial_id, row.name, _place(row)) for row in connection.execute(query)]


def _replace_members(connection: Connection, study_id: int, members: Sequence[_Member]) -> None:
    connection.execute(delete(study_trial).where(study_trial.c.study_id == study_id))
    nowhere = {"side": None, "stage": None, "number": None}
    rows = [
        {"study_id": study_id, "position": position, "trial_id": trial_id, "name": name}
        | (nowhere if place is None else asdict(place))
        for position, trial_id, name, place in members
    ]
    if rows:
        connection.execute(study_trial.insert(), rows)


def _place(row: Row[Any]) -> Place | None:
    return None if row.side is None else Place(side=row.side, stage=row.stage, number=row.number)
