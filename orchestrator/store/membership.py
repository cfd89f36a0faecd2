"""Which trials exist and which study plans them. Every function works inside the caller's transaction."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, delete, func, select, update

from orchestrator.store.database import chunks, insert_new, now
from orchestrator.store.records import STATES, Place, PlannedTrial, StudyKey, StudySummary, TrialRow, TrialState
from orchestrator.store.schema import study, study_trial, trial


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no white space, as `TrialConfig.canonical_json` writes it."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def register(
    connection: Connection, key: StudyKey, trials: Sequence[PlannedTrial], instead_of: Sequence[str] | None
) -> bool:
    """See `Store.register`."""
    configs = {planned.trial_id: canonical_json(planned.config) for planned in trials}
    assert len(configs) == len(trials), f"a trial is planned twice in {key}"
    study_id = _locked_study(connection, key)
    stored = _stored_members(connection, study_id)
    if instead_of is not None and [member.trial_id for member in stored] != list(instead_of):
        return False
    connection.execute(update(study).where(study.c.id == study_id).values(planned_at=now(connection)))
    _insert_trials(connection, configs)
    planned = [_Member(position, trial.trial_id, trial.name, trial.place) for position, trial in enumerate(trials)]
    if stored != planned:  # planning a study again, the common case, writes next to nothing
        _replace_members(connection, study_id, planned)
    return True


def _locked_study(connection: Connection, key: StudyKey) -> int:
    """The study's id. Its row stays locked, so that a study planned twice at the same time has one plan, not a
    mixture."""
    insert_new(connection, study, [{**_columns(key), "planned_at": now(connection)}])
    found: int = connection.execute(select(study.c.id).where(is_study(key)).with_for_update()).scalar_one()
    return found


def _insert_trials(connection: Connection, configs: Mapping[str, str]) -> None:
    moment = now(connection)
    known = _configs(connection, configs)
    # In the order of their ids: two studies that insert the same trials in different orders would block each other.
    new_ids = sorted(configs.keys() - known.keys())
    rows = [
        {"id": trial_id, "state": "planned", "attempt": 0, "planned_at": moment, "config": configs[trial_id]}
        for trial_id in new_ids
    ]
    insert_new(connection, trial, rows)
    known |= _configs(connection, new_ids)  # read back: another process may have inserted some of them just before
    for trial_id, config in configs.items():
        assert known[trial_id] == config, f"trial {trial_id} is known with another config: {known[trial_id]}"


def studies(connection: Connection) -> list[StudySummary]:
    """See `Store.studies`."""
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
    for row in connection.execute(query):
        key = StudyKey(study=row.study, scale=row.scale, corpus=row.corpus, overrides=row.overrides)
        empty: dict[TrialState, int] = dict.fromkeys(STATES, 0)
        summary = summaries.setdefault(row.id, StudySummary(key=key, planned_at=row.planned_at, counts=empty))
        if row.state is not None:
            summary.counts[row.state] = row.trials
    return list(summaries.values())


def trials(connection: Connection, key: StudyKey) -> list[TrialRow]:
    """See `Store.trials`."""
    query = (
        select(trial, *(study_trial.c[name] for name in ("name", "side", "stage", "number")))
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


def states(connection: Connection, ids: Collection[str]) -> dict[str, TrialState]:
    """See `Store.states`."""
    found: dict[str, TrialState] = {}
    for chunk in chunks(ids):
        query = select(trial.c.id, trial.c.state).where(trial.c.id.in_(chunk))
        found.update((row.id, row.state) for row in connection.execute(query))
    return found


def _configs(connection: Connection, ids: Collection[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for chunk in chunks(ids):
        query = select(trial.c.id, trial.c.config).where(trial.c.id.in_(chunk))
        found.update((row.id, row.config) for row in connection.execute(query))
    return found


class _Member(NamedTuple):
    position: int
    trial_id: str
    name: str
    place: Place | None


def _stored_members(connection: Connection, study_id: int) -> list[_Member]:
    rows = connection.execute(
        select(study_trial).where(study_trial.c.study_id == study_id).order_by(study_trial.c.position)
    )
    return [_Member(row.position, row.trial_id, row.name, _place(row)) for row in rows]


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


def _columns(key: StudyKey) -> dict[str, str]:
    return {"study": key.study, "scale": key.scale, "corpus": key.corpus, "overrides": key.overrides}


def is_study(key: StudyKey) -> ColumnElement[bool]:
    """The condition that picks a study variant."""
    return (
        (study.c.study == key.study)
        & (study.c.scale == key.scale)
        & (study.c.corpus == key.corpus)
        & (study.c.overrides == key.overrides)
    )
