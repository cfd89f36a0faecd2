"""Trained models from Python."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from orchestrator.command import open_existing
from orchestrator.storage import storage_at
from orchestrator.store import TrialRow
from orchestrator.words import short_id
from trainables.config import LanguageTrialConfig, UserCode
from trainables.corpora import Corpus
from trainables.errors import UserError
from trainables.language_model import LanguageModel
from trainables.runtime import Runtime
from trainables.trial import kept_model
from trainables.trial_folder import KEPT_WEIGHTS, RESULT_FILES


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A trial's model with its kept weights (those of the best validation loss), on the CPU."""

    config: LanguageTrialConfig
    model: LanguageModel
    corpus: Corpus

    def log_probabilities(self, contexts: int | None = None) -> NDArray[np.float32]:
        """Return the log-probability matrix in nats: contexts x words (`corpus.vocabulary`).

        Rows belong to the first `contexts` test tokens, by default as many as in the trial's
        spectrum. Raises UserError if `contexts` is less than 1.
        """
        from trainables.measurements import log_p_matrix

        if contexts is not None and contexts < 1:
            raise UserError(f"contexts: must be at least 1; got {contexts}.")
        return log_p_matrix(self.model, self.corpus, self.config, contexts)


def trained(
    trial_id: str,
    *,
    storage: str | Path = "results",
    store: str | Path | None = None,
    data_dir: str | Path | None = None,
    layers: Sequence[str] = (),
) -> Trained:
    """Return the model of the done trial whose id begins with `trial_id`.

    `layers` are files of your own output layers. Raises UserError if the trial or its files do not
    exist.
    """
    with open_existing(store, storage) as results_store:
        rows = {
            row.trial_id: row
            for summary in results_store.studies()
            for row in results_store.trials(summary.key)
            if row.trial_id.startswith(trial_id)
        }
    row = _only_one([*rows.values()], trial_id)
    if not isinstance(row.validated, LanguageTrialConfig) or row.state != "done":
        raise UserError(
            f"the trial {row.name} ({short_id(row.trial_id)}) is {row.state} and has no saved model"
        )
    trial_storage = storage_at(os.fspath(storage))
    trial_storage.bring([row.trial_id], [*RESULT_FILES, KEPT_WEIGHTS])
    files = tuple(UserCode.read(Path(layer), "layers are files") for layer in layers)
    runtime = Runtime(
        data_dir=None if data_dir is None else Path(data_dir),
        threads=torch.get_num_threads(),
        code=files,
    )
    model, corpus = kept_model(
        row.validated, directory=trial_storage.trial(row.trial_id).path, runtime=runtime
    )
    return Trained(config=row.validated, model=model, corpus=corpus)


def _only_one(rows: Sequence[TrialRow], start: str) -> TrialRow:
    if len(rows) == 1:
        return rows[0]
    count = f"{len(rows)} trials have" if rows else "no trial has"
    raise UserError(
        f"{count} an id that starts with {start!r}. See the column trial_id of "
        f"orchestrator.results()."
    )
