"""Which trials exist, which study plans them, and what people ask of the runs that are under
way."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, astuple
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, delete, select, update

from orchestrator.store.checksums import (
    END,
    MEMBER,
    STUDY,
    Values,
    by_first_column,
    end_is_wrong,
    is_config_of,
    study_checksum,
)
from orchestrator.store.database import Transactions, chunks, insert_new, now, storable
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
from orchestrator.store.schema import run, stop_request, study, study_trial, trial
from trainables.config import completed, identity


class Studies(Transactions):
    """The part of the store about studies and the runs of them; see `Store`."""

    def register(
        self,
        key: StudyKey,
        trials: Sequence[PlannedTrial],
        *,
        instead_of: Sequence[str] | None = None,
    ) -> bool:
        """Make the study's membership exactly `trials`, in this order; new trials become planned.

        With `instead_of` only where the members are these trial ids at that moment: of two
        processes that plan further trials from the same members, one does. Returns whether the
        membership is `trials` now; where not, it stays as it was. A trial belongs to as many
        studies as plan it, and is never deleted. Raises AssertionError where a stored `trial_id`
        comes with another config, or comes twice."""
        configs = {planned.trial_id: canonical_json(identity(planned.config)) for planned in trials}
        assert len(configs) == len(trials), f"a trial is planned twice in {key}"
        with self._database.write() as connection:
            study_id = _locked_study(connection, key)
            query = (
                select(study_trial)
                .where(study_trial.c.study_id == study_id)
                .order_by(study_trial.c.position)
            )
            stored = [dict(row) for row in connection.execute(query).mappings()]
            if instead_of is not None and [member["trial_id"] for member in stored] != list(
                instead_of
            ):
                return False
            self._insert_trials(connection, configs)
            members = [
                _member(study_id, position, planned) for position, planned in enumerate(trials)
            ]
            checksum = study_checksum(
                astuple(key), ([row[column.name] for column in MEMBER] for row in members)
            )
            values = {"planned_at": now(connection), "checksum": checksum}
            connection.execute(update(study).where(study.c.id == study_id).values(values))
            if stored != members:  # planning a study again, the common case, writes next to nothing
                connection.execute(delete(study_trial).where(study_trial.c.study_id == study_id))
                if members:
                    connection.execute(study_trial.insert(), members)
            return True

    def studies(self) -> list[StudySummary]:
        """Every study variant with the count of each state, zeros included; the one planned last
        comes last."""
        query = select(study_trial.c.study_id, *MEMBER, trial.c.state)
        summaries = []
        with self._database.read() as connection:
            members = by_first_column(
                connection.execute(query.join_from(study_trial, trial, isouter=True)).all()
            )
            for row in connection.execute(select(study).order_by(study.c.planned_at, study.c.id)):
                key = StudyKey(**{column.name: getattr(row, column.name) for column in STUDY})
                self._check_members(key, row.checksum, (member[:-1] for member in members[row.id]))
                counts = Counter(member[-1] for member in members[row.id])
                by_state: dict[TrialState, int] = {state: counts.pop(state, 0) for state in STATES}
                self._refuse(
                    [f"trials of {key.study} are in no state that there is" for _ in counts]
                )
                summaries.append(StudySummary(key=key, planned_at=row.planned_at, counts=by_state))
        return summaries

    def trials(self, key: StudyKey) -> list[TrialRow]:
        """The study's trials in plan order; empty for a study that was never registered."""
        with self._database.read() as connection:
            return self._trials(connection, key)

    def states(self, trial_ids: Collection[str]) -> dict[str, TrialState]:
        """The state of each of these trials that the store has."""
        with self._database.read() as connection:
            states = column_of(connection, "state", trial_ids)
            self._refuse(
                [
                    change_of("state", trial_id)
                    for trial_id, state in states.items()
                    if state not in STATES
                ]
            )
            return states

    def begin_run(self, record: RunRecord) -> int:
        """Record that a run of the command starts now; returns its id."""
        with self._database.write() as connection:
            row = {
                **asdict(record),
                "packages": canonical_json(record.packages),
                "started_at": now(connection),
            }
            key = connection.execute(run.insert().values(row)).inserted_primary_key
            assert key is not None, "an insert of one row gives its key"
            return int(key[0])

    def end_run(self, run_id: int) -> None:
        """Record that a run ends now. Raises KeyError for an id that is none."""
        with self._database.write() as connection:
            ended = connection.execute(
                update(run).where(run.c.id == run_id).values(ended_at=now(connection))
            )
            if ended.rowcount == 0:
                raise KeyError(run_id)

    def ask_to_stop(self, target: StudyKey | str) -> None:
        """Ask whoever runs the study, or the trial of this id, to stop it; runs that begin later
        are not meant."""
        if isinstance(target, StudyKey):
            column, query = "study_id", select(study.c.id).where(is_study(target))
        else:
            column, query = "trial_id", select(trial.c.id).where(trial.c.id == target)
        with self._database.write() as connection:
            key = connection.execute(query).scalar_one_or_none()
            if key is None:
                raise KeyError(target)
            connection.execute(
                stop_request.insert().values({column: key, "asked_at": now(connection)})
            )

    def requests(self, key: StudyKey, run_id: int) -> Requests:
        """What was asked since the run began, by the store's clock, and when the study was planned
        last."""
        began = select(run.c.started_at).where(run.c.id == run_id).scalar_subquery()
        query = select(stop_request.c.study_id, stop_request.c.trial_id).where(
            stop_request.c.asked_at > began
        )
        with self._database.read() as connection:
            planned = connection.execute(
                select(study.c.id, study.c.planned_at).where(is_study(key))
            ).one_or_none()
            if planned is None:
                raise KeyError(key)
            rows = connection.execute(query).all()
        return Requests(
            planned_at=planned.planned_at,
            stop_study=any(row.study_id == planned.id for row in rows),
            stop_trials=frozenset(row.trial_id for row in rows if row.trial_id is not None),
        )

    def _trials(
        self, connection: Connection, key: StudyKey, only: Collection[str] | None = None
    ) -> list[TrialRow]:
        """`trials` inside the caller's transaction; of `only` these trial ids, whatever else the
        study has."""
        stored = connection.execute(select(study.c.checksum).where(is_study(key))).one_or_none()
        if stored is None:
            return []
        query = select_members(
            key, *MEMBER, trial.c.config, trial.c.owner, trial.c.lease_until, trial.c.checksum, *END
        )
        members = among(query.join(trial, isouter=True), only)
        rows = connection.execute(members.order_by(study_trial.c.position)).all()
        if only is None:
            self._check_members(key, stored.checksum, (row[: len(MEMBER)] for row in rows))
        self._refuse(
            [
                change_of("config", row.trial_id)
                for row in rows
                if not is_config_of(row.trial_id, row.config)
            ]
        )
        self._check_ends(rows)
        return [
            TrialRow(
                trial_id=row.trial_id,
                name=row.name,
                place=None
                if row.side is None
                else Place(side=row.side, stage=row.stage, number=row.number),
                config=completed(json.loads(row.config)),
                state=row.state,
                attempt=row.attempt,
                owner=row.owner,
                lease_until=row.lease_until,
                cause=row.cause,
            )
            for row in rows
        ]

    def _check_members(
        self, key: StudyKey, checksum: str | None, members: Iterable[Values]
    ) -> None:
        if checksum != study_checksum(astuple(key), members):
            self._refuse([f"the list of the trials of {key.variant} is not what was planned"])

    def _check_ends(self, rows: Sequence[Row[Any]]) -> None:
        """Of trials; the last columns are `checksum` and `END`."""
        self._refuse(
            [
                change_of("end", row.id)
                for row in rows
                if end_is_wrong(row[-len(END) :], row.checksum)
            ]
        )

    def _insert_trials(self, connection: Connection, configs: Mapping[str, str]) -> None:
        moment = now(connection)
        stored = column_of(connection, "config", configs)
        # In the order of their ids: two studies that insert the same trials in different orders
        # would block each other.
        new_ids = sorted(configs.keys() - stored.keys())
        rows = [
            {
                "id": trial_id,
                "state": "planned",
                "attempt": 0,
                "planned_at": moment,
                "config": configs[trial_id],
            }
            for trial_id in new_ids
        ]
        insert_new(connection, trial, rows)
        stored |= column_of(
            connection, "config", new_ids
        )  # another process may have inserted some of them just before
        for trial_id, config in configs.items():
            if stored[trial_id] != config:
                assert is_config_of(trial_id, config), (
                    f"trial {trial_id} is stored with another config"
                )
                self._refuse([change_of("config", trial_id)])


def change_of(part: str, trial_id: str) -> str:
    """The clause that a part of a trial is damaged."""
    return f"trial {trial_id[:12]} has changed since it was recorded ({part})"


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no white space, as `TrialConfig.canonical_json` writes it."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def is_study(key: StudyKey) -> ColumnElement[bool]:
    """The condition that picks a study variant."""
    return and_(*(study.c[name] == value for name, value in asdict(key).items()))


def select_members(key: StudyKey, *columns: Any) -> Select[Any]:
    """A query for columns of a study's members, to be joined with what else the columns are of."""
    return select(*columns).join_from(study, study_trial).where(is_study(key))


def among(query: Select[Any], trial_ids: Collection[str] | None) -> Select[Any]:
    """The query over a study's members, of these trial ids alone; of all for None."""
    return query if trial_ids is None else query.where(study_trial.c.trial_id.in_(trial_ids))


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


def _locked_study(connection: Connection, key: StudyKey) -> int:
    """The study's id. Its row stays locked, so that a study planned twice at the same time has one
    plan, not a mixture."""
    row = {
        **asdict(key),
        "planned_at": now(connection),
        "checksum": study_checksum(astuple(key), []),
    }
    insert_new(connection, study, [row])
    study_id: int = connection.execute(
        select(study.c.id).where(is_study(key)).with_for_update()
    ).scalar_one()
    return study_id


def column_of(connection: Connection, name: str, trial_ids: Collection[str]) -> dict[str, Any]:
    """One column of those of these trials that the store has, by their ids."""
    values: dict[str, Any] = {}
    for chunk in chunks(trial_ids):
        query = select(trial.c.id, trial.c[name]).where(trial.c.id.in_(chunk))
        values.update((trial_id, value) for trial_id, value in connection.execute(query))
    return values
