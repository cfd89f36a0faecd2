"""One trial from start to end: train, measure, and leave the result as a file before anyone is told.

A trial has a folder of its own: see `trainables.trial_folder.folder`.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch

from trainables.config import PERPLEXITY, SPECTRUM, AnyConfig, TrialConfig
from trainables.corpora import load
from trainables.experiments import run_experiment
from trainables.measurements import PeakMemory, measure
from trainables.output_layers import load_layers
from trainables.runtime import Runtime
from trainables.training import DivergedError, PrunedError, Trainer
from trainables.trial_folder import (
    Checkpoints,
    EpochMetrics,
    Metric,
    TrialFolder,
    TrialOutcome,
    describe,
    save_tensors,
    spectrum_of,
)


def run_trial(
    config: AnyConfig,
    *,
    directory: Path,
    runtime: Runtime,
    measurements: Sequence[str] = (PERPLEXITY, SPECTRUM),
    on_epoch: Callable[[EpochMetrics], None] | None = None,
    stop_above: Mapping[int, float] | None = None,
) -> TrialOutcome:
    """Train and measure one trial, or return the result that its folder already holds.

    A trial that trains no language model takes its own measurements in one go. Any other goes on from a checkpoint
    where there is one. The outcome is `done` or `diverged`, or `pruned` by `stop_above` (see `Trainer.train`), and is
    on disk before it is returned; any other trouble is an exception,
    SupersededError where another worker took the trial over. A pruned trial keeps its checkpoint and goes on
    from it the next time. Only one process at a time works in a folder: a second one waits.
    """
    directory.mkdir(parents=True, exist_ok=True)
    folder = TrialFolder(directory, config.trial_id)
    with folder.locked():
        earlier = folder.outcome()
        if earlier is not None:
            # Its worker may have been killed before it had cleared up.
            if earlier.state == "done":
                folder.forget_checkpoints()
            folder.drop_fence()
            return earlier
        folder.forget_result()  # of a trial that was pruned then and goes on now
        folder.take_over()
        prepare(runtime)
        if isinstance(config, TrialConfig):
            follow = on_epoch or (lambda _: None)
            outcome = _run_language_model(config, folder, runtime, measurements, follow, stop_above)
        else:
            outcome = run_experiment(config, folder, runtime)
        folder.leave()
        return outcome


def _run_language_model(
    config: TrialConfig,
    folder: TrialFolder,
    runtime: Runtime,
    measurements: Sequence[str],
    on_epoch: Callable[[EpochMetrics], None],
    stop_above: Mapping[int, float] | None,
) -> TrialOutcome:
    memory = PeakMemory(runtime.device)
    corpus = load(config.corpus, data_dir=runtime.data_dir)
    trainer = Trainer(config, corpus, runtime)
    checkpoints = Checkpoints(folder)
    checkpoint = checkpoints.latest(runtime.device)
    if checkpoint is not None:
        trainer.restore(*checkpoint)
    environment = describe(runtime.device, runtime.threads)
    try:
        trainer.train(checkpoints, on_epoch, stop_above)
        trainer.take_kept_weights()
        trained_at = time.monotonic()
        measured = measure(measurements, trainer.model, corpus, config, runtime)
    except (DivergedError, PrunedError) as error:
        pruned = isinstance(error, PrunedError)
        if pruned:
            checkpoints.save(trainer.progress.step, *trainer.snapshot())
        outcome = TrialOutcome(
            trial_id=config.trial_id,
            state="pruned" if pruned else "diverged",
            cause=str(error),
            epochs=tuple(trainer.progress.epochs),
            environment=environment,
        )
        folder.write_result(outcome, None)
        return outcome
    outcome = TrialOutcome(
        trial_id=config.trial_id,
        state="done",
        epochs=tuple(trainer.progress.epochs),
        measurements={
            "training@1": _training_metrics(trainer, memory, time.monotonic() - trained_at),
            **{name: metrics for name, (metrics, _) in measured.items()},
        },
        environment=environment,
    )
    folder.check_fence()
    folder.forget_measurements()
    save_tensors(folder.kept_weights, trainer.kept, {"trial_id": config.trial_id})
    folder.write_result(outcome, spectrum_of(measured.values()))
    folder.forget_checkpoints()
    return outcome


def prepare(runtime: Runtime) -> None:
    """Set this process up as the runtime says: threads, determinism, output layers of the user's own."""
    torch.set_num_threads(runtime.threads)
    if runtime.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when cuBLAS is first used
    # Every GPU kernel repeats its bits; where one cannot, the framework warns.
    torch.use_deterministic_algorithms(runtime.deterministic, warn_only=True)
    # The module gets this attribute by a property, which the type checker does not see.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
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
