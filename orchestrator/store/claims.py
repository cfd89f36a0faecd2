"""Who runs which trial, and for how long. Every function works inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, func, or_, select, update

from orchestrator.store.database import chunks, now
from orchestrator.store.records import TrialState
from orchestrator.store.schema import result, spectrum, trial

_IDLE: dict[str, Any] = {"state": "planned", "owner": None, "lease_until": None}


def claim(connection: Connection, trial_ids: Sequence[str], *, owner: str, lease_s: float) -> list[str]:
    """See `Store.claim`."""
    moment = now(connection)
    is_free = or_(
        trial.c.state == "planned",
        and_(trial.c.state == "running", or_(trial.c.lease_until <= moment, trial.c.owner == owner)),
    )
    got: set[str] = set()
    for chunk in chunks(sorted(trial_ids)):
        got |= _locked(connection, and_(trial.c.id.in_(chunk), is_free))
    taken = {
        "state": "running",
        "owner": owner,
        "lease_until": moment + timedelta(seconds=lease_s),
        "attempt": trial.c.attempt + 1,
        "started_at": func.coalesce(trial.c.started_at, moment),
        "ended_at": None,
    }
    for chunk in chunks(got):
        connection.execute(update(trial).where(trial.c.id.in_(chunk)).values(taken))
    return [trial_id for trial_id in trial_ids if trial_id in got]


def renew(connection: Connection, owner: str, lease_s: float) -> int:
    """See `Store.renew`."""
    until = now(connection) + timedelta(seconds=lease_s)
    return _update(connection, trial.c.owner == owner, {"lease_until": until})


def release(connection: Connection, trial_ids: Collection[str], *, owner: str) -> int:
    """See `Store.release`."""
    mine = trial.c.owner == owner
    return sum(_update(connection, and_(trial.c.id.in_(chunk), mine), _IDLE) for chunk in chunks(sorted(trial_ids)))


def expire(connection: Connection, owner: str) -> int:
    """See `Store.expire`."""
    return _update(connection, trial.c.owner == owner, _IDLE)


def owners(connection: Connection) -> list[str]:
    """See `Store.owners`."""
    query = select(trial.c.owner).where(trial.c.owner.is_not(None)).distinct()
    # Sorted here: databases sort text by different rules.
    return sorted(name for name in connection.execute(query).scalars() if name is not None)


def reset(connection: Connection, trial_ids: Collection[str], states: Sequence[TrialState]) -> list[str]:
    """See `Store.reset`."""
    for kept, instead in (("done", "a done trial never changes"), ("running", "release or expire it")):
        if kept in states:
            raise ValueError(f"reset cannot make a {kept} trial planned: {instead}")
    changed: set[str] = set()
    cleared = {**_IDLE, "cause": None, "environment": None, "run_id": None, "ended_at": None}
    for chunk in chunks(sorted(trial_ids)):
        found = _locked(connection, and_(trial.c.id.in_(chunk), trial.c.state.in_(list(states))))
        for table in (result, spectrum):
            connection.execute(delete(table).where(table.c.trial_id.in_(found)))
        connection.execute(update(trial).where(trial.c.id.in_(found)).values(cleared))
        changed |= found
    return [trial_id for trial_id in trial_ids if trial_id in changed]


def _locked(connection: Connection, condition: ColumnElement[bool]) -> set[str]:
    """The trials that meet the condition, locked until the transaction ends.

    PostgreSQL waits for whoever holds one of them and then looks at the condition again. That takes milliseconds;
    skipping locked rows instead would hide a free trial from `claim` whenever someone else touches it. The lock is FOR
    NO KEY UPDATE, which a mere reference to the trial (a study being planned) does not hold up, taken in the order of
    the ids, so that no two transactions wait for each other. SQLite locks the whole database and needs none of this.
    """
    query = select(trial.c.id).where(condition).order_by(trial.c.id).with_for_update(key_share=True)
    return set(connection.execute(query).scalars())


def _update(connection: Connection, condition: ColumnElement[bool], values: dict[str, Any]) -> int:
    """Set columns of the trials that meet the condition, in nothing but the order of their ids; returns how many."""
    # By id: the condition itself might meanwhile hold for trials that are not locked.
    found = sorted(_locked(connection, condition))
    for chunk in chunks(found):
        connection.execute(update(trial).where(trial.c.id.in_(chunk)).values(values))
    return len(found)
