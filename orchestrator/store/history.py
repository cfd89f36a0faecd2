"""The attempts that workers have made at trials: where, when, and what ended them. No result hangs
on them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from sqlalchemy import Connection, func, select, update

from orchestrator.store.database import Transactions, chunks, now, storable
from orchestrator.store.records import Attempt
from orchestrator.store.schema import attempt, trial

TAKEN_OVER = "the command that ran it ended, or was cut off, without giving it back"
GONE_ON = "its worker ended while it was at it, by no fault of the trial"
STOPPED = "it was stopped, or its command was; the next attempt goes on from its checkpoint"


class History(Transactions):
    """The part of the store that remembers attempts; see `Store`."""

    def record_starts(self, places: Mapping[str, str], *, attempts: Mapping[str, int]) -> None:
        """Workers at these places ("host, GPU 3"), by trial id, have taken up trials, for the
        claims of these numbers. A start for a claim that is over is left out."""
        with self._database.write() as connection:
            running = select(trial.c.id, trial.c.attempt).where(
                trial.c.state == "running", trial.c.id.in_(places)
            )
            locked = running.order_by(trial.c.id).with_for_update(key_share=True)
            taken_up = [
                trial_id
                for trial_id, claim in connection.execute(locked)
                if claim == attempts[trial_id]
            ]
            if not taken_up:
                return
            moment = now(connection)
            end_attempts(connection, taken_up, GONE_ON, moment)
            counts = select(attempt.c.trial_id, func.max(attempt.c.number)).where(
                attempt.c.trial_id.in_(taken_up)
            )
            before = {
                row[0]: row[1] for row in connection.execute(counts.group_by(attempt.c.trial_id))
            }
            rows = [
                {
                    "trial_id": trial_id,
                    "number": before.get(trial_id, 0) + 1,
                    "place": storable(places[trial_id]),
                    "started_at": moment,
                }
                for trial_id in taken_up
            ]
            connection.execute(attempt.insert(), rows)

    def end_attempt(self, trial_id: str, *, claim: int, cause: str) -> None:
        """The attempt that goes on under the claim of this number has ended for a cause (one
        sentence), and the trial is tried again. Where the claim is over, nothing changes."""
        with self._database.write() as connection:
            query = select(trial.c.attempt).where(
                trial.c.id == trial_id, trial.c.state == "running"
            )
            if (
                connection.execute(query.with_for_update(key_share=True)).scalar_one_or_none()
                == claim
            ):
                end_attempts(connection, [trial_id], storable(cause), now(connection))

    def attempts(self, trial_id: str) -> list[Attempt]:
        """The trial's attempts in order, as far as a worker took them up and they were remembered
        then."""
        query = select(attempt).where(attempt.c.trial_id == trial_id).order_by(attempt.c.number)
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        return [
            Attempt(row.number, row.place, row.started_at, row.ended_at, row.cause) for row in rows
        ]


def end_attempts(
    connection: Connection, trial_ids: Collection[str], cause: str | None, moment: datetime
) -> None:
    """Whatever attempts at these trials go on ended at that moment."""
    ended = {"ended_at": moment, "cause": cause}
    for chunk in chunks(trial_ids):
        is_open = (attempt.c.trial_id.in_(chunk), attempt.c.ended_at.is_(None))
        connection.execute(update(attempt).where(*is_open).values(ended))
