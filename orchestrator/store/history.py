"""The attempts that workers have made at trials: where, when, and what ended them. No result hangs on them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlalchemy import Connection, select, update

from orchestrator.store.database import Transactions, chunks, now, storable, upsert
from orchestrator.store.records import Attempt
from orchestrator.store.schema import attempt, trial

TAKEN_OVER = "the command that ran it ended, or was cut off, without giving it back"
STOPPED = "it was stopped, or its command was; the next attempt goes on from its checkpoint"


class History(Transactions):
    """The part of the store that remembers attempts; see `Store`."""

    def record_starts(self, places: Mapping[str, str], *, attempts: Mapping[str, int]) -> None:
        """Workers at these places ("host, GPU 3"), by trial id, have taken up trials, for the attempts for which these
        were claimed. A start for an attempt that is over is left out."""
        with self._database.write() as connection:
            running = select(trial.c.id, trial.c.attempt).where(trial.c.state == "running", trial.c.id.in_(places))
            moment = now(connection)
            locked = running.order_by(trial.c.id).with_for_update(key_share=True)
            rows = [
                {
                    "trial_id": trial_id,
                    "number": number,
                    "place": storable(places[trial_id]),
                    "started_at": moment,
                    "ended_at": None,
                    "cause": None,
                }
                for trial_id, number in connection.execute(locked)
                if number == attempts[trial_id]
            ]
            upsert(connection, attempt, rows)

    def end_attempt(self, trial_id: str, number: int, *, cause: str) -> None:
        """The attempt has ended without a result, for a cause (one sentence), and another one follows."""
        with self._database.write() as connection:
            ended = {"ended_at": now(connection), "cause": storable(cause)}
            is_open = (attempt.c.trial_id == trial_id, attempt.c.number == number, attempt.c.ended_at.is_(None))
            connection.execute(update(attempt).where(*is_open).values(ended))

    def attempts(self, trial_id: str) -> list[Attempt]:
        """The trial's attempts in order, as far as a worker took them up and they were remembered then."""
        query = select(attempt).where(attempt.c.trial_id == trial_id).order_by(attempt.c.number)
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        return [Attempt(row.number, row.place, row.started_at, row.ended_at, row.cause) for row in rows]


def end_attempts(connection: Connection, trial_ids: Collection[str], cause: str | None) -> None:
    """Whatever attempts at these trials go on have ended now."""
    ended = {"ended_at": now(connection), "cause": cause}
    for chunk in chunks(trial_ids):
        is_open = (attempt.c.trial_id.in_(chunk), attempt.c.ended_at.is_(None))
        connection.execute(update(attempt).where(*is_open).values(ended))
