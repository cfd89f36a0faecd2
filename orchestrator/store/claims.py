"""Claim and release trials for drivers, and record the attempts of workers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, and_, delete, func, or_, select, update

from orchestrator.store.database import Database, execute_for, now, storable
from orchestrator.store.records import LOST, Attempt, StudyKey, TrialState
from orchestrator.store.schema import attempt, epoch, result, spectrum, study, study_trial, trial
from orchestrator.store.studies import column_of, is_study

TAKEN_OVER = "its command ended or lost its connection before the trial ended"
WORKER_ENDED = "its worker ended during the trial, for a reason other than the trial"
STOPPED = "the trial or its command was stopped; the next attempt resumes from its checkpoint"
_PLANNED_VALUES: dict[str, Any] = {"state": "planned", "owner": None, "lease_until": None}
_NEW_VALUES = {**_PLANNED_VALUES, "outcome": None, "run_id": None, "ended_at": None}


class Claims(Database):
    """Methods of `Store` with which drivers claim and release trials."""

    def claim(self, trial_ids: Sequence[str], *, owner: str, lease_s: float) -> dict[str, int]:
        """Claim free trials for `lease_s` seconds; return the attempt number of each, by id.

        A trial is free if it is planned, if its lease has run out, or if `owner` already holds it.
        If several processes claim a trial at once, one gets it. Each claim raises the trial's
        attempt number, which identifies the claim. Ids keep the given order.
        """
        with self.write() as connection:
            moment = now(connection)
            is_free = or_(
                trial.c.state == "planned",
                and_(
                    trial.c.state == "running",
                    or_(trial.c.lease_until <= moment, trial.c.owner == owner),
                ),
            )
            values = {
                "state": "running",
                "owner": owner,
                "lease_until": moment + timedelta(seconds=lease_s),
                "attempt": trial.c.attempt + 1,
                "started_at": func.coalesce(trial.c.started_at, moment),
                "ended_at": None,
            }
            claimed_ids = _update(connection, is_free, values, among=trial_ids)
            end_attempts(connection, claimed_ids, TAKEN_OVER, moment)
            attempts = column_of(connection, "attempt", claimed_ids)
        return {trial_id: attempts[trial_id] for trial_id in trial_ids if trial_id in claimed_ids}

    def renew(self, owner: str, lease_s: float) -> int:
        """Extend the leases of `owner` to `lease_s` seconds from now; return how many there are."""
        with self.write() as connection:
            until = now(connection) + timedelta(seconds=lease_s)
            return len(_update(connection, trial.c.owner == owner, {"lease_until": until}))

    def release(
        self, owner: str, trial_ids: Collection[str] | None = None, *, cause: str = STOPPED
    ) -> int:
        """Set running trials of `owner` to planned; return the number of these trials.

        `trial_ids` limits the release to these trials. Each released attempt records `cause`.
        """
        with self.write() as connection:
            released_ids = _update(
                connection, trial.c.owner == owner, _PLANNED_VALUES, among=trial_ids
            )
            end_attempts(connection, released_ids, cause, now(connection))
            return len(released_ids)

    def owners(self) -> list[str]:
        """Return the owners of running trials, sorted."""
        query = select(trial.c.owner).distinct()
        with self.read() as connection:
            # Sorted here, because databases sort text by different rules.
            return sorted(filter(None, connection.execute(query).scalars()))

    def reset(self, trial_ids: Collection[str], states: Sequence[TrialState] = LOST) -> list[str]:
        """Set the trials in one of `states` to planned. Return the ids, in the given order.

        Failure causes and measurements are deleted. Epochs stay until the next attempt replaces
        them. Raises ValueError for the states done and running.
        """
        if {"done", "running"}.intersection(states):
            raise ValueError(
                f"cannot reset {states}: a done trial never changes, and a running one is released"
            )
        with self.write() as connection:
            is_chosen = trial.c.state.in_(list(states))
            ids = _update(connection, is_chosen, _NEW_VALUES, among=trial_ids)
            clear(connection, ids, result, spectrum)
        return [trial_id for trial_id in trial_ids if trial_id in ids]

    def forget(self, keys: Iterable[StudyKey], trial_ids: Collection[str]) -> None:
        """Delete studies and the results of trials.

        Trials that are then in no study are deleted. The others get the state planned.
        """
        with self.write() as connection:
            for key in keys:
                ids = select(study.c.id).where(is_study(key))
                connection.execute(delete(study_trial).where(study_trial.c.study_id.in_(ids)))
                connection.execute(delete(study).where(is_study(key)))
            clear(connection, trial_ids, attempt, epoch, result, spectrum)
            left = trial.c.id.in_(select(study_trial.c.trial_id))
            _update(connection, left, _NEW_VALUES, among=trial_ids)
            execute_for(connection, delete(trial).where(~left), trial.c.id, trial_ids)

    def record_starts(self, hosts: Mapping[str, str], *, attempts: Mapping[str, int]) -> None:
        """Record that workers started trials; ignore trials whose claim has ended.

        `hosts` maps trial ids to host and GPU ("host, GPU 3"), `attempts` to attempt numbers.
        """
        with self.write() as connection:
            started_ids, moment = claimed_trials(connection, hosts, attempts), now(connection)
            end_attempts(connection, started_ids, WORKER_ENDED, moment)
            for trial_id in started_ids:
                host = storable(hosts[trial_id])
                row = {"trial_id": trial_id, "place": host, "started_at": moment}
                connection.execute(attempt.insert().values(row))

    def end_attempt(self, trial_id: str, *, claim: int, cause: str) -> None:
        """Record why a worker's attempt ended; the trial stays claimed.

        `claim` is the attempt number. Nothing is recorded if that claim has ended.
        """
        with self.write() as connection:
            claimed_ids = claimed_trials(connection, [trial_id], {trial_id: claim})
            end_attempts(connection, claimed_ids, storable(cause), now(connection))

    def attempts(self, trial_id: str) -> list[Attempt]:
        """Return a trial's attempts in order of start."""
        query = select(attempt).where(attempt.c.trial_id == trial_id)
        with self.read() as connection:
            rows = connection.execute(query.order_by(attempt.c.started_at)).all()
        return [
            Attempt(number, row.place, row.started_at, row.ended_at, row.cause)
            for number, row in enumerate(rows, start=1)
        ]


def clear(connection: Connection, trial_ids: Collection[str], *tables: Table) -> None:
    """Delete the trials' rows of these tables."""
    for table in tables:
        execute_for(connection, delete(table), table.c.trial_id, trial_ids)


def claimed_trials(
    connection: Connection, trial_ids: Collection[str], attempts: Mapping[str, int]
) -> list[str]:
    """Lock the trials whose attempt number is still that in `attempts`; return the sorted ids."""
    running = select(trial.c.id, trial.c.attempt).where(
        trial.c.state == "running", trial.c.id.in_(trial_ids)
    )
    # In id order, because processes that lock the same trials in different orders deadlock.
    locked = running.order_by(trial.c.id).with_for_update(key_share=True)
    return [key for key, claim in connection.execute(locked) if claim == attempts[key]]


def end_attempts(
    connection: Connection, trial_ids: Collection[str], cause: str | None, moment: datetime
) -> None:
    """Record `cause` and the time `moment` as the end of these trials' unfinished attempts."""
    is_open = attempt.c.ended_at.is_(None)
    end = update(attempt).where(is_open).values(ended_at=moment, cause=cause)
    execute_for(connection, end, attempt.c.trial_id, trial_ids)


def _update(
    connection: Connection,
    condition: ColumnElement[bool],
    values: dict[str, Any],
    *,
    among: Collection[str] | None = None,
) -> set[str]:
    # Lock the rows in id order: processes with different orders would deadlock. PostgreSQL waits
    # for a lock, then checks the condition again; skipping locked rows would hide free trials from
    # `claim`. FOR NO KEY UPDATE (`key_share`) does not wait for processes that plan a study with
    # the trial. Update by id, because the condition may by then hold for unlocked rows.
    query = select(trial.c.id).where(condition).order_by(trial.c.id).with_for_update(key_share=True)
    if among is None:
        ids = set(connection.execute(query).scalars())
    else:
        results = execute_for(connection, query, trial.c.id, sorted(among))
        ids = {trial_id for rows in results for trial_id in rows.scalars()}
    execute_for(connection, update(trial).values(values), trial.c.id, ids)
    return ids
