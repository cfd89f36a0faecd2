"""Which trials exist and which study plans them. Every function works inside the caller's transaction."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, func, select, update

from orchestrator.store.database import chunks, insert_new, now
from orchestrator.store.records import STATES, PlannedTrial, StudyKey, StudySummary, TrialRow, TrialState
from orchestrator.store.schema import study, study_trial, trial


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no white space, as `TrialConfig.canonical_json` writes it."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def register(connection: Connection, key: StudyKey, trials: Sequence[PlannedTrial]) -> None:
    """See `Store.register`."""
    configs = {planned.trial_id: canonical_json(planned.config) for planned in trials}
    assert len(configs) == len(trials), f"a trial is planned twice in {key}"
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
    insert_new(connection, study, [{**_columns(key), "planned_at": moment}])
    is_key = is_study(key)
    # The update also locks the row, so that a study planned twice at the same time has one plan, not a mixture.
    connection.execute(update(study).where(is_key).values(planned_at=moment))
    _set_members(connection, connection.execute(select(study.c.id).where(is_key)).scalar_one(), trials)


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
        select(trial, study_trial.c.name)
        .join_from(study, study_trial)
        .join(trial)
        .where(is_study(key))
        .order_by(study_trial.c.position)
    )
    return [
        TrialRow(
            trial_id=row.id,
            name=row.name,
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


def _set_members(connection: Connection, study_id: int, trials: Sequence[PlannedTrial]) -> None:
    planned = [(position, each.trial_id, each.name) for position, each in enumerate(trials)]
    query = select(study_trial.c.position, study_trial.c.trial_id, study_trial.c.name)
    stored = connection.execute(query.where(study_trial.c.study_id == study_id).order_by(study_trial.c.position))
    if [tuple(row) for row in stored] == planned:
        return  # planning a study again, the common case, writes next to nothing
    connection.execute(delete(study_trial).where(study_trial.c.study_id == study_id))
    rows = [
        {"study_id": study_id, "position": position, "trial_id": trial_id, "name": name}
        for position, trial_id, name in planned
    ]
    if rows:
        connection.execute(study_trial.insert(), rows)


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
