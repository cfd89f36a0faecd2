"""What people ask of sweeps that run elsewhere. Every function works inside the caller's transaction."""

from __future__ import annotations

from sqlalchemy import Connection, select

from orchestrator.store.database import now
from orchestrator.store.membership import is_study
from orchestrator.store.records import Requests, StudyKey
from orchestrator.store.schema import run, stop_request, study, trial


def ask_to_stop(connection: Connection, what: StudyKey | str) -> None:
    """See `Store.ask_to_stop`."""
    if isinstance(what, StudyKey):
        query = select(study.c.id).where(is_study(what))
    else:
        query = select(trial.c.id).where(trial.c.id == what)
    found = connection.execute(query).scalar_one_or_none()
    if found is None:
        raise KeyError(what)
    column = "study_id" if isinstance(what, StudyKey) else "trial_id"
    connection.execute(stop_request.insert().values({column: found, "asked_at": now(connection)}))


def requests(connection: Connection, key: StudyKey, run_id: int) -> Requests:
    """See `Store.requests`."""
    about = connection.execute(select(study.c.id, study.c.planned_at).where(is_study(key))).one_or_none()
    if about is None:
        raise KeyError(key)
    began = select(run.c.started_at).where(run.c.id == run_id).scalar_subquery()
    query = select(stop_request.c.study_id, stop_request.c.trial_id).where(stop_request.c.asked_at > began)
    rows = connection.execute(query).all()
    return Requests(
        planned_at=about.planned_at,
        stop_study=any(row.study_id == about.id for row in rows),
        stop_trials=frozenset(row.trial_id for row in rows if row.trial_id is not None),
    )
