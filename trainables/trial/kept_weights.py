"""Measure a done trial later, with its kept weights (those of the best validation loss)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from torch import Tensor

from trainables.config import AnyConfig, LanguageTrialConfig
from trainables.corpora import Corpus, load
from trainables.errors import UserError
from trainables.language_model import LanguageModel
from trainables.measurements import measure
from trainables.pulse import PULSE, START
from trainables.runtime import Runtime
from trainables.training import Trainer
from trainables.trial.trial_run import LOCK_S, prepare
from trainables.trial_folder import DamagedFileError, TrialFolder, load_tensors


def measure_kept(
    config: AnyConfig,
    *,
    directory: Path,
    runtime: Runtime,
    names: Sequence[str],
    note: Callable[[str], None] = lambda _: None,
) -> None:
    """Take the named measurements, such as "top_k@1", of a done trial.

    On a CPU, results equal those at the end of training bit for bit. Each measurement is written
    before the next one starts. An existing measurement is repeated only if it is damaged; `note`
    reports the damage. Raises UserError if the kept weights are missing or damaged, and the errors
    of `measure`.
    """
    if not isinstance(config, LanguageTrialConfig):
        raise UserError(
            f"{', '.join(names)} cannot be measured later, because trials of kind {config.kind} "
            "keep no weights: run the study again with another --storage (and --store)"
        )
    folder = TrialFolder(directory, config.trial_id, note)
    _require_weights(folder)
    PULSE.enter("waiting for its folder", quiet_s=LOCK_S)
    with folder.locked():
        PULSE.enter(START)
        missing_names = [name for name in names if not folder.has_measurement(name)]
        if missing_names:
            model, corpus = kept_model(config, directory=directory, runtime=runtime)
            outcome = folder.outcome()
            epochs = () if outcome is None else outcome.model_epochs
            for name in missing_names:
                measurements = measure([name], model, corpus, config, runtime, epochs=epochs)
                folder.write_measurement(name, measurements[name])


def kept_model(
    config: LanguageTrialConfig, *, directory: Path, runtime: Runtime
) -> tuple[LanguageModel, Corpus]:
    """Return a done trial's model with its kept weights, in evaluation mode, and its corpus.

    Raises UserError if the weights are missing or damaged, or the corpus is missing.
    """
    folder = TrialFolder(directory, config.trial_id)
    _require_weights(folder)
    prepare(runtime)
    trainer = Trainer(config, load(config.corpus, data_dir=runtime.data_dir), runtime)
    trainer.take_weights(_read_weights(folder, runtime.device))
    return trainer.model.eval(), trainer.corpus


def _require_weights(folder: TrialFolder) -> None:
    if not folder.kept_weights.is_file():
        raise UserError(
            f"{folder.kept_weights} is missing: restore the trial's folder, or train the study "
            "again with another --storage (and --store)"
        )


def _read_weights(folder: TrialFolder, device: str) -> dict[str, Tensor]:
    path = folder.kept_weights
    try:
        tensors, state = load_tensors(path, device)
        if state.get("trial_id") != folder.trial_id:
            raise DamagedFileError(
                f"{path} has the weights of another trial, {str(state.get('trial_id'))[:12]}"
            )
        folder.check_kept_weights()
    except DamagedFileError as error:
        raise UserError(
            f"{error}: restore the file, or train the study again with another --storage"
        ) from error
    return tensors
