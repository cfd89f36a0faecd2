"""One trial from start to end: train, measure, and leave the result as a file before anyone is told. And a trained one
measured again, on the weights that it kept.

A trial has a folder of its own: see `trainables.trial_folder.folder`.
"""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trainables.config import PERPLEXITY, SPECTRUM, AnyConfig, TrialConfig
from trainables.corpora import Corpus, load
from trainables.device import repeat_bits
from trainables.errors import UserError, first_line
from trainables.experiments import measure_experiment
from trainables.language_model import AwdLstm
from trainables.measurements import PeakMemory, epoch_ranks, measure
from trainables.output_layers import load_layers
from trainables.pulse import PULSE, START
from trainables.runtime import Runtime
from trainables.training import DivergedError, PrunedError, Trainer
from trainables.trial_folder import (
    Checkpoints,
    DamagedFileError,
    EpochMetrics,
    FinalState,
    Measured,
    Metric,
    TrialFolder,
    TrialOutcome,
    describe,
    load_tensors,
    perplexity,
    save_tensors,
    spectrum_of,
)

LOCK_S = 3600.0
"""So long a healthy trial may wait for its folder: another driver may be at a measurement there."""


def run_trial(
    config: AnyConfig,
    *,
    directory: Path,
    runtime: Runtime,
    measurements: Sequence[str] = (PERPLEXITY, SPECTRUM),
    on_epoch: Callable[[EpochMetrics], None] | None = None,
    stop_above: Mapping[int, float] | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> TrialOutcome:
    """Train and measure one trial, or return the result that its folder already holds.

    A trial that trains no language model takes its own measurements in one go. Any other goes on from a checkpoint
    where there is one. The outcome is `done` or `diverged`, or `pruned` by `stop_above` (see `Trainer.train`), and is
    on disk before it is returned; any other trouble is an exception,
    SupersededError where another worker took the trial over. A pruned trial keeps its checkpoint and goes on
    from it the next time. A damaged file counts as none, and `note` is told so. Only one process at a time works in a
    folder: a second one waits.
    """
    directory.mkdir(parents=True, exist_ok=True)
    folder = TrialFolder(directory, config.trial_id, note)
    PULSE.enter("while it waited for its folder", quiet_s=LOCK_S)
    with folder.locked():
        PULSE.enter(START)
        earlier = _earlier(folder)
        if earlier is not None:
            # Its worker may have been killed before it had cleared up.
            if earlier.state == "done":
                folder.forget_checkpoints()
            folder.drop_fence()
            return earlier
        folder.forget_result()  # of a trial that was pruned then and goes on now
        folder.take_over()
        folder.write_config(config.model_dump_json(indent=1))
        folder.log(f"taken up on {socket.gethostname()}, {runtime.device}")
        prepare(runtime)

        def ended(epoch: EpochMetrics) -> None:
            folder.log(_line(epoch))
            if on_epoch is not None:
                on_epoch(epoch)

        outcome = _run(config, folder, runtime, measurements, ended, stop_above or {})
        folder.log(f"{outcome.state}{f': {outcome.cause}' if outcome.cause else ''}")
        folder.leave()
        return outcome


def _line(epoch: EpochMetrics) -> str:
    perplexities = f"perplexity {perplexity(epoch.train_loss):.2f}, in validation {perplexity(epoch.valid_loss):.2f}"
    averaging = ", averaging" if epoch.averaging else ""
    return f"epoch {epoch.epoch}: {perplexities}{averaging}, {epoch.seconds:.1f} s"


def _earlier(folder: TrialFolder) -> TrialOutcome | None:
    """The outcome that lies in the folder and is final."""
    try:
        result = folder.result()
    except DamagedFileError as error:
        folder.set_aside_result()
        folder.note(f"{error}: the trial runs again")
        return None
    return result[0] if result is not None and result[0].state != "pruned" else None


def _run(
    config: AnyConfig,
    folder: TrialFolder,
    runtime: Runtime,
    names: Sequence[str],
    on_epoch: Callable[[EpochMetrics], None],
    stop_above: Mapping[int, float],
) -> TrialOutcome:
    environment = describe(runtime.device, runtime.threads)
    memory, start_s = PeakMemory(runtime.device), time.monotonic()
    state: FinalState = "done"
    cause, trainer, measured = None, None, dict[str, Measured]()
    try:
        if isinstance(config, TrialConfig):
            trainer = Trainer(config, load(config.corpus, data_dir=runtime.data_dir), runtime, epoch_ranks)
            measured = _train(trainer, folder, memory, names, on_epoch, stop_above)
        else:
            measured = measure_experiment(config, runtime)
            cost: dict[str, Metric] = {"wall_seconds": time.monotonic() - start_s, "peak_memory_mib": memory.peak_mib()}
            measured = {"cost@1": Measured(cost), **measured}
    except (DivergedError, PrunedError) as error:
        state, cause = "pruned" if isinstance(error, PrunedError) else "diverged", str(error)
    outcome = TrialOutcome(
        trial_id=config.trial_id,
        state=state,
        cause=cause,
        epochs=tuple(trainer.progress.epochs) if trainer else (),
        measurements={name: metrics for name, (metrics, _) in measured.items()},
        environment=environment,
    )
    outcome = folder.write_result(outcome, spectrum_of(measured.values()))
    if trainer and state == "done":
        folder.forget_checkpoints()
    return outcome


def _train(
    trainer: Trainer,
    folder: TrialFolder,
    memory: PeakMemory,
    names: Sequence[str],
    on_epoch: Callable[[EpochMetrics], None],
    stop_above: Mapping[int, float],
) -> dict[str, Measured]:
    """Train to the end from the last checkpoint, keep the weights, measure on them."""
    checkpoints = Checkpoints(folder)
    checkpoint = checkpoints.latest(trainer.runtime.device)
    if checkpoint is not None:
        _restore(trainer, checkpoint, folder)
        folder.log(f"goes on from the checkpoint after step {trainer.progress.step}")
    try:
        trainer.train(checkpoints, on_epoch, stop_above)
    except PrunedError:
        checkpoints.save(trainer.progress.step, *trainer.snapshot())
        raise
    trainer.take_kept_weights()
    trained_at = time.monotonic()
    measured = measure(names, trainer.model, trainer.corpus, trainer.config, trainer.runtime)
    cost = _training_metrics(trainer, memory, time.monotonic() - trained_at)
    folder.check_fence()
    folder.forget_measurements()
    save_tensors(folder.kept_weights, trainer.kept, {"trial_id": folder.trial_id})
    return {"training@1": Measured(cost), **measured}


def _restore(trainer: Trainer, checkpoint: tuple[dict[str, Tensor], dict[str, Any]], folder: TrialFolder) -> None:
    try:
        trainer.restore(*checkpoint)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"the checkpoints in {folder.path} are whole, but not of this program's version ({first_line(error)}): "
            "remove them, and the trial starts anew"
        ) from error


def measure_kept(
    config: AnyConfig,
    *,
    directory: Path,
    runtime: Runtime,
    names: Sequence[str],
    note: Callable[[str], None] = lambda _: None,
) -> None:
    """Take the named measurements ("top_k@1") of a done trial; on a CPU, bit for bit those of its end.

    Each is a file in the trial's folder before the next one starts, and one that is there already is not taken again.
    One that is damaged is, and `note` is told so. Only one process at a time works in a folder: a second one waits.
    Raises UserError where the kept weights are
    missing or damaged, and as `measure` does.
    """
    if not isinstance(config, TrialConfig):
        raise UserError(
            f"{', '.join(names)} cannot be taken later of a trial of kind {config.kind}, which keeps no weights: run "
            "the study anew with another --storage (and --store)"
        )
    folder = TrialFolder(directory, config.trial_id, note)
    _require_weights(folder)
    PULSE.enter("while it waited for its folder", quiet_s=LOCK_S)
    with folder.locked():
        PULSE.enter(START)
        absent = [name for name in names if not folder.has_measurement(name)]
        if absent:
            model, corpus = kept_model(config, directory=directory, runtime=runtime)
            for name in absent:
                measured = measure([name], model, corpus, config, runtime)
                folder.write_measurement(name, measured[name])


def kept_model(config: TrialConfig, *, directory: Path, runtime: Runtime) -> tuple[AwdLstm, Corpus]:
    """The model of a done trial with the weights that it kept, ready to predict, and its corpus.

    Raises UserError where the weights are missing or damaged, and where the corpus is not there.
    """
    folder = TrialFolder(directory, config.trial_id)
    _require_weights(folder)
    prepare(runtime)
    trainer = Trainer(config, load(config.corpus, data_dir=runtime.data_dir), runtime)
    trainer.kept = _read_weights(folder, runtime.device)
    trainer.take_kept_weights()
    return trainer.model.eval(), trainer.corpus


def _require_weights(folder: TrialFolder) -> None:
    if not folder.kept_weights.is_file():
        raise UserError(
            f"the weights that the trial kept are needed, and {folder.kept_weights} is missing: put the trial's folder "
            "back, or train the study anew with another --storage (and --store)"
        )


def _read_weights(folder: TrialFolder, device: str) -> dict[str, Tensor]:
    path = folder.kept_weights
    try:
        tensors, state = load_tensors(path, device)
        if state.get("trial_id") != folder.trial_id:
            raise DamagedFileError(f"{path} holds the weights of another trial, {str(state.get('trial_id'))[:12]}")
        folder.check_kept_weights()
    except DamagedFileError as error:
        raise UserError(f"{error}: put the file back as it was, or train the study anew elsewhere") from error
    return tensors


def prepare(runtime: Runtime) -> None:
    """Set this process up as the runtime says: threads, determinism, output layers of the user's own."""
    torch.set_num_threads(runtime.threads)
    repeat_bits(runtime.deterministic)
    for file in runtime.layer_files:
        load_layers(file)


def _training_metrics(trainer: Trainer, memory: PeakMemory, measured_s: float) -> dict[str, Metric]:
    progress = trainer.progress
    kept = next(epoch for epoch in progress.epochs if epoch.epoch == progress.kept_epoch)
    seconds = sum(epoch.seconds for epoch in progress.epochs)
    return {
        "train_perplexity": math.exp(kept.train_loss),
        "valid_perplexity": math.exp(kept.valid_loss),
        "kept_epoch": kept.epoch,
        "epochs": len(progress.epochs),
        "parameters": sum(p.numel() for p in trainer.model.parameters() if p.requires_grad),
        "seconds": seconds,
        "seconds_per_epoch": seconds / len(progress.epochs),
        "tokens_per_second": progress.tokens / seconds,
        "wall_seconds": progress.wall_seconds + measured_s,
        "peak_memory_mib": memory.peak_mib(),
    }
