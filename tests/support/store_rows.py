from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
from sqlalchemy import create_engine, select, text, update

from orchestrator.store import PlannedTrial, RunRecord, Store, StudyKey
from orchestrator.store.schema import metadata
from trainables.trial_folder import EpochMetrics, FinalState, TrialOutcome

KEY = StudyKey(study="gss_grid", scale="quick", corpus="pydocs")
RUN = RunRecord(
    code_version="0.1.0",
    packages={"torch": "2.13.0", "numpy": "2.4.6"},
    host="a host",
    device="cpu",
    corpus_sha256="0" * 64,
)
SPECTRUM = np.array([3.5e4, 1.0, np.pi, 1e-300, 0.0])


def planned(number: int, *, group: str = "", name: str | None = None) -> PlannedTrial:
    """Return a trial whose id, like a real trial's, is the SHA-256 of its config."""
    config: dict[str, Any] = {
        "seed": number,
        "group": group,
        "output_layer": {"name": "gss", "c": -1.5, "k": 1e-7},
    }
    identity = hashlib.sha256(
        json.dumps(config, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()
    return PlannedTrial(trial_id=identity, name=name or f"trial {number}", config=config)


def plan(length: int, *, group: str = "") -> list[PlannedTrial]:
    return [planned(number, group=group) for number in range(length)]


def ids(trials: list[PlannedTrial]) -> list[str]:
    return [trial.trial_id for trial in trials]


def epoch(number: int, *, valid_loss: float = 5.25) -> EpochMetrics:
    """Return an epoch whose numbers have no short decimal form, so that rounding would show."""
    return EpochMetrics(
        epoch=number,
        tokens=3_000_000_000,
        train_loss=1 / 3,
        valid_loss=valid_loss,
        averaging=number > 1,
        seconds=0.1,
    )


def ranked_epoch(number: int) -> EpochMetrics:
    return epoch(number).model_copy(
        update={"press_rank": 100 + number, "entropy_rank": 12 + 1 / 3, "kl_rank": 7}
    )


def outcome(
    trial_id: str, *, state: FinalState = "done", epochs: int = 3, **changes: Any
) -> TrialOutcome:
    fields: dict[str, Any] = {
        "trial_id": trial_id,
        "state": state,
        "cause": None if state == "done" else "the loss is not finite",
        "epochs": tuple(epoch(number) for number in range(1, epochs + 1)),
        "measurements": {
            "perplexity@1": {"test_perplexity": 123.456789012345678, "kept_epoch": 3},
            "spectrum@1": {"press_rank": 402, "method": "gram", "full": True},
        },
        "environment": {"device": "cpu", "torch": "2.13.0"},
    }
    return TrialOutcome(**{**fields, **changes})


def fail(
    store: Store, trial_id: str, *, cause: str, run_id: int, attempt: int | None = None
) -> bool:
    failed = TrialOutcome(trial_id=trial_id, state="failed", cause=cause)
    return store.record(failed, run_id=run_id, attempt=attempt)


def execute(url: str, *statements: str, **values: object) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement), values)
    engine.dispose()


def forge(url: str, table: str, *, condition: str = "true", **values: object) -> None:
    """Set columns and keep their checksums valid, as an attacker could."""
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(update(metadata.tables[table]).where(text(condition)).values(values))
    engine.dispose()


PASSING = ("attempt", "owner", "lease_until", "started_at", "ended_at")
LOST_BY_REBUILDING = {*PASSING, "run_id", "stop_asked_at", "id", "study_id"}
"""Columns that a rebuild of the store cannot restore, because no file contains them."""


def tables(url: str) -> dict[str, list[str]]:
    engine = create_engine(url)
    rows = {}
    with engine.connect() as connection:
        for name in ("study", "trial", "study_trial", "epoch", "result", "spectrum"):
            table = metadata.tables[name]
            query = select(table)
            if name == "study_trial":
                query = select(table, metadata.tables["study"]).join_from(
                    table, metadata.tables["study"]
                )
            rows[name] = sorted(
                repr({key: _plain(value) for key, value in row.items() if _is_kept(key, name)})
                for row in connection.execute(query).mappings()
            )
    engine.dispose()
    return rows


def _is_kept(column: str, table: str) -> bool:
    return column not in LOST_BY_REBUILDING or (table, column) == ("trial", "id")


def _plain(value: object) -> object:
    return value.tobytes() if isinstance(value, np.ndarray) else value


def everything(store: Store, key: StudyKey = KEY) -> dict[str, object]:
    return {
        "counts": [summary.counts for summary in store.studies() if summary.key == key],
        "rows": [{**row, **dict.fromkeys(PASSING)} for row in store.results(key)],
        "epochs": store.epochs_by_trial(key),
        "spectra": {trial_id: values.tobytes() for trial_id, values in store.spectra(key).items()},
    }


def plan_of(trial: PlannedTrial) -> PlannedTrial:
    return PlannedTrial(
        trial_id=trial.trial_id, name=trial.name, config=trial.config, position=trial.position
    )
