"""Measuring a trained trial again, on the weights that it kept: nothing is trained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from trainables.config import AnyConfig, TrialConfig
from trainables.corpora import load
from trainables.errors import UserError
from trainables.measurements import measure
from trainables.runtime import Runtime
from trainables.training import Trainer
from trainables.trial.trial_run import prepare
from trainables.trial_folder import TrialFolder, load_tensors


def measure_kept(config: AnyConfig, *, directory: Path, runtime: Runtime, names: Sequence[str]) -> None:
    """Take the named measurements ("top_k@1") of a done trial; on a CPU, bit for bit those of its end.

    Each is a file in the trial's folder before the next one starts, and one that is there already is not taken again.
    Only one process at a time works in a folder: a second one waits. Raises UserError where the kept weights are
    missing or damaged, and as `measure` does.
    """
    if not isinstance(config, TrialConfig):
        raise UserError(
            f"{', '.join(names)} cannot be taken later of a trial of kind {config.kind}, which keeps no weights: run "
            "the study anew with another --storage (and --store)"
        )
    folder = TrialFolder(directory, config.trial_id)
    if not folder.kept_weights.is_file():
        raise UserError(
            f"a later measurement needs the weights that the trial kept, and {folder.kept_weights} is missing: put the "
            "trial's folder back, or train the study anew with another --storage (and --store)"
        )
    with folder.locked():
        absent = [name for name in names if folder.measurement(name) is None]
        if absent:
            prepare(runtime)
            corpus = load(config.corpus, data_dir=runtime.data_dir)
            trainer = Trainer(config, corpus, runtime)
            trainer.kept = _read_weights(folder.kept_weights, config.trial_id, runtime.device)
            trainer.take_kept_weights()
            for name in absent:
                measured = measure([name], trainer.model.eval(), corpus, config, runtime)
                folder.write_measurement(name, measured[name])


def _read_weights(path: Path, trial_id: str, device: str) -> dict[str, Tensor]:
    try:
        tensors, state = load_tensors(path, device)
    except ValueError as error:
        raise UserError(f"{error}: put the file back as it was, or train the study anew elsewhere") from error
    if state.get("trial_id") != trial_id:
        raise UserError(
            f"{path} holds the weights of another trial, {str(state.get('trial_id'))[:12]}: put this trial's own back"
        )
    return tensors
