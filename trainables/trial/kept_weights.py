"""Measuring a trained trial again, on the weights that it kept: nothing is trained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainables.config import AnyConfig, TrialConfig
from trainables.corpora import load
from trainables.errors import UserError
from trainables.language_model import AwdLstm
from trainables.measurements import measure
from trainables.runtime import Runtime
from trainables.trial.trial_run import prepare
from trainables.trial_folder import Measured, Metric, TrialFolder, load_tensors, spectrum_of


def measure_kept(
    config: AnyConfig, *, directory: Path, runtime: Runtime, names: Sequence[str]
) -> tuple[dict[str, dict[str, Metric]], NDArray[np.float64] | None]:
    """Take the named measurements ("top_k@1") of a done trial; on a CPU, bit for bit those of its end.

    Returns their metrics by name, and the singular values if one of them gives some. Each measurement is a file in the
    trial's folder before the next one starts, and one that is there already is not taken again. Only one process at a
    time works in a folder: a second one waits. Raises UserError where the kept weights are missing or damaged, and as
    `measure` does.
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
        stored = {name: folder.measurement(name) for name in names}
        absent = [name for name, measurement in stored.items() if measurement is None]
        measured = _measure(config, absent, folder, runtime) if absent else {}
        measurements = {name: measurement or measured[name] for name, measurement in stored.items()}
    return {name: metrics for name, (metrics, _) in measurements.items()}, spectrum_of(measurements.values())


def _measure(config: TrialConfig, names: Sequence[str], folder: TrialFolder, runtime: Runtime) -> dict[str, Measured]:
    prepare(runtime)
    corpus = load(config.corpus, data_dir=runtime.data_dir)
    model = _kept_model(config, len(corpus.vocabulary), folder.kept_weights, runtime.device)
    measurements: dict[str, Measured] = {}
    for name in names:
        measurements |= measure([name], model, corpus, config, runtime)
        folder.write_measurement(name, measurements[name])
    return measurements


def _kept_model(config: TrialConfig, vocabulary_size: int, path: Path, device: str) -> AwdLstm:
    weights = _read_weights(path, config.trial_id, device)
    # As in training, should a user's own layer draw more than parameters.
    torch.manual_seed(config.seed)
    model = AwdLstm(config.model, config.output_layer, vocabulary_size)
    model.initialise(torch.Generator().manual_seed(config.seed))
    model.to(device)
    torch.backends.cudnn.allow_tf32 = False
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights[name])
    return model.eval()


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
