"""Data of one trial from the store and the storage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orchestrator.analysis import in_reading_order
from orchestrator.store import LOST, Attempt, StudyKey
from orchestrator.view import parts
from orchestrator.view.source import Source
from trainables.config import flat_values
from trainables.trial_folder import TOP_K, DamagedFileError, Epoch, WordsAfter, open_file

LOG_LINES, LOG_BYTES = 60, 20_000
"""Lines shown, and bytes read, from the end of a log."""


@dataclass(frozen=True, kw_only=True)
class OneTrial:
    """Data that a trial's page shows."""

    row: Mapping[str, Any]
    """Row of `Store.results`."""
    keys: Sequence[StudyKey]
    key: StudyKey
    """Study in whose context the trial is shown."""
    settings: Mapping[str, Any]
    varying_settings: Sequence[str]
    epochs: Sequence[Epoch]
    spectrum: NDArray[np.float64] | None
    predictions: Mapping[str, WordsAfter]
    """Metric of a context -> most probable next words."""
    attempts: Sequence[Attempt]
    log: str

    @property
    def metrics(self) -> dict[str, Any]:
        """Return the metrics without predicted words, in the order of `in_reading_order`."""
        names = self.row["metrics"].keys() - self.predictions.keys()
        return {name: self.row["metrics"][name] for name in in_reading_order(names)}

    @property
    def facts(self) -> dict[str, str]:
        """Id, state, attempts, hosts and cause."""
        row, attempts = self.row, self.attempts[-1:]
        hosts = [
            attempt.host
            for attempt in attempts
            if attempt.ended_at is None and row["state"] == "running"
        ]
        facts = {
            "id": row["trial_id"],
            "state": row["state"],
            "attempts": str(row["attempt"]),
            "worker": "".join(hosts),
            "driver": parts.host_of(row["owner"] or ""),
            "cause": row["cause"],
        }
        return {name: fact for name, fact in facts.items() if fact}

    @property
    def version(self) -> str:
        """Return a text that changes whenever the page has something new."""
        row = self.row
        counts = (len(self.epochs), len(row["metrics"]))
        return f"{row['state']} {row['attempt']} {counts} {hash((tuple(self.attempts), self.log))}"


def read_trial(source: Source, trial_id: str, variant: str = "") -> OneTrial:
    """Return a trial in the context of study `variant`, or of the trial's first study.

    Raises UserError if the store cannot be read or does not have the trial.
    """
    trial_id, keys = source.trial(trial_id)
    key = next((key for key in keys if key.variant == variant), keys[0])
    with source.store() as opened:
        (row,) = opened.results(key, [trial_id])
        epochs, spectra = opened.epochs(trial_id), opened.spectra([trial_id])
        attempts = opened.attempts(trial_id)
    return OneTrial(
        row=row,
        keys=keys,
        key=key,
        settings=flat_values(row["config"]),
        varying_settings=source.trials(key.variant).settings,
        epochs=epochs,
        spectrum=spectra.get(trial_id),
        predictions={
            name: WordsAfter.model_validate_json(text)
            for name, text in row["metrics"].items()
            if TOP_K.fullmatch(name) and isinstance(text, str)
        },
        attempts=attempts,
        log=_log(source, trial_id, failed=row["state"] in LOST),
    )


def _log(source: Source, trial_id: str, *, failed: bool) -> str:
    folder = source.storage.trial(trial_id)
    paths = [folder.log_file, folder.error_log] if failed else [folder.log_file]
    names = [path.name for path in paths]
    source.fetch(trial_id, lambda: source.storage.bring([trial_id], names))
    return "\n".join(line for path in paths for line in _last_lines(path))


def _last_lines(path: Path) -> list[str]:
    with suppress(OSError, DamagedFileError), open_file(path) as file:
        file.seek(max(0, path.stat().st_size - LOG_BYTES))
        return file.read().decode(errors="replace").splitlines()[-LOG_LINES:]
    return []
