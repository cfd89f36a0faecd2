"""One trial from start to end: train, measure, and write the result before reporting it."""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Self

import torch

from trainables.config import (
    PERPLEXITY,
    SPECTRUM,
    USER,
    AnyConfig,
    Command,
    ExperimentConfig,
    LanguageTrialConfig,
    Trainable,
    load_code,
    read_config,
    require_code,
)
from trainables.corpora import load
from trainables.device import repeat_bits, triton_note
from trainables.errors import UserError, first_line
from trainables.experiments import measure_experiment
from trainables.measurements import PeakMemory, epoch_ranks, measure
from trainables.pulse import PULSE, START
from trainables.runtime import Runtime
from trainables.training import DivergedError, PrunedError, Trainer
from trainables.trial.command_run import run_command
from trainables.trial.user_trial import QUIET_S, Trial
from trainables.trial_folder import (
    BusyError,
    Checkpoints,
    DamagedFileError,
    Epoch,
    FinalState,
    Measured,
    Metric,
    Snapshot,
    TrialFolder,
    TrialOutcome,
    describe,
    save_tensors,
)

LOCK_S = 3600.0
"""Seconds that a trial may wait for its folder, because another driver may be measuring there."""


def run_trial(
    config: AnyConfig,
    *,
    directory: Path,
    runtime: Runtime,
    measurements: Sequence[str] = (PERPLEXITY, SPECTRUM),
    on_epoch: Callable[[Epoch], None] = lambda _: None,
    stop_above: Mapping[int, float] = MappingProxyType({}),
    note: Callable[[str], None] = lambda _: None,
) -> TrialOutcome:
    """Train and measure one trial, or return the result in its folder.

    A language model or a user's trial resumes from its last checkpoint; any other trial starts
    over. The outcome is
    `done`, `diverged` or `pruned`, and is on disk before it is returned. `stop_above` prunes (see
    `Trainer.train`); a pruned trial keeps its checkpoint. Raises SupersededError if another worker
    took over the trial.

    `note` reports damaged files, which are ignored. One process at a time works in a folder; others
    wait, unless one of the two is a worker without a driver: then BusyError is raised.
    """
    task = TrialTask(config, directory, on_epoch, stop_above, note)
    with TrialRun(task, runtime, measurements) as run:
        if run.earlier is not None:
            return run.earlier
        try:
            if not isinstance(config, LanguageTrialConfig):
                return run.run_experiment(config)
            run.trainer.train(run.checkpoints, run.tell, task.stop_above)
        except (DivergedError, PrunedError) as error:
            return run.end(error)
        return run.end()


@dataclass(frozen=True)
class TrialTask:
    """A trial, its folder and its callbacks."""

    config: AnyConfig
    directory: Path
    on_epoch: Callable[[Epoch], None] = lambda _: None
    stop_above: Mapping[int, float] = field(default_factory=dict[int, float])
    note: Callable[[str], None] = lambda _: None


class TrialRun:
    """A trial in its locked folder, from start to result."""

    def __init__(self, task: TrialTask, runtime: Runtime, measurements: Sequence[str]) -> None:
        self.task, self._runtime, self._names = task, runtime, measurements
        self._folder = TrialFolder(task.directory, task.config.trial_id, task.note)
        self.checkpoints = Checkpoints(self._folder)
        self.earlier: TrialOutcome | None = None
        self._trial: Trial | None = None

    def __enter__(self) -> Self:
        self.task.directory.mkdir(parents=True, exist_ok=True)
        PULSE.enter("waiting for its folder", quiet_s=LOCK_S)
        with ExitStack() as exits:
            self._lock(exits)
            PULSE.enter(START)
            self._begin()
            if self.earlier is None:
                exits.enter_context(self._folder.fence.renewed())
            self._exits = exits.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        with suppress(Exception):  # `end` has waited, or another error ends the trial
            self.checkpoints.wait()
        self._exits.close()

    def _lock(self, exits: ExitStack) -> None:
        try:
            exits.enter_context(self._folder.locked(wait=False))
        except BlockingIOError as error:
            if self._runtime.worker or self._folder.worker():
                raise BusyError(f"another worker has the trial in {self._folder.path}") from error
            exits.enter_context(self._folder.locked())

    def _begin(self) -> None:
        folder = self._folder
        self.earlier = _previous_outcome(folder, self._runtime.worker)
        if self.earlier is None:
            folder.take_over(self._runtime.worker)
            # Without a lock that hosts share, another one may have ended the trial just before.
            self.earlier = folder.outcome()
        if self.earlier is not None:
            # Its worker may have been killed before its cleanup.
            if self.earlier.state == "done":
                folder.forget_checkpoints()
            folder.fence.drop()
            return
        folder.forget_result()  # of a pruned trial that resumes now
        folder.write_config(self.task.config.model_dump_json(indent=1))
        folder.log(f"started on {socket.gethostname()}, {self._runtime.device}")
        prepare(self._runtime)
        if note := triton_note(self._runtime.device):
            folder.log(note)
        self._environment = describe(self._runtime.device, self._runtime.threads)
        self._memory, self._start_s = PeakMemory(self._runtime.device), time.monotonic()

    @cached_property
    def trainer(self) -> Trainer:
        """Return the trainer, restored from the last checkpoint."""
        config, folder = self.task.config, self._folder
        assert isinstance(config, LanguageTrialConfig)
        trainer = Trainer(
            config, load(config.corpus, data_dir=self._runtime.data_dir), self._runtime, epoch_ranks
        )
        checkpoint = self.checkpoints.latest(self._runtime.device)
        if checkpoint is not None:
            _restore(trainer, checkpoint, folder)
            folder.log(f"resumes from the checkpoint after step {trainer.progress.step}")
        return trainer

    def tell(self, epoch: Epoch) -> None:
        """Log and report the end of an epoch."""
        self._folder.log(str(epoch))
        self.task.on_epoch(epoch)

    def run_experiment(self, config: ExperimentConfig) -> TrialOutcome:
        """Run and record an experiment or a user's trial."""
        if isinstance(config, Trainable | Command):
            measurements = self._train_user_code(config)
        else:
            measurements = measure_experiment(config, self._runtime)
        seconds, peak_mib = time.monotonic() - self._start_s, self._memory.peak_mib()
        cost = Measured({"wall_seconds": seconds, "peak_memory_mib": peak_mib})
        return self._record({"cost@1": cost, **measurements})

    def _train_user_code(self, config: Trainable | Command) -> dict[str, Measured]:
        task = self.task
        self._trial = trial = Trial(
            config, self._runtime, self.checkpoints, self.tell, task.stop_above
        )
        PULSE.enter("in the user's code", quiet_s=QUIET_S)
        if isinstance(config, Command):
            return {USER: Measured(run_command(config, trial))}
        require_code(config.sha256, config.trainable)
        loaded = read_config(config.model_dump(mode="json"))
        assert isinstance(loaded, Trainable)
        return {USER: Measured(trial.final_metrics(loaded.train(trial)))}

    def end(self, error: DivergedError | PrunedError | None = None) -> TrialOutcome:
        """Record the end of training. If there is no error, measure the kept weights."""
        if error is not None:
            if isinstance(error, PrunedError) and self._trial is None:
                self.checkpoints.save(self.trainer.progress.step, *self.trainer.snapshot())
            return self._record({}, error)
        trainer, start_s = self.trainer, time.monotonic()
        trainer.take_weights(trainer.kept)
        epochs = trainer.progress.epochs
        measurements = measure(
            self._names,
            trainer.model,
            trainer.corpus,
            trainer.config,
            self._runtime,
            epochs=epochs,
        )
        cost = _training_metrics(trainer, self._memory, time.monotonic() - start_s)
        self._folder.check_fence()
        self._folder.forget_measurements()
        save_tensors(self._folder.kept_weights, trainer.kept, {"trial_id": self._folder.trial_id})
        return self._record({"training@1": Measured(cost), **measurements})

    def _record(
        self, measurements: Mapping[str, Measured], error: DivergedError | PrunedError | None = None
    ) -> TrialOutcome:
        folder = self._folder
        self.checkpoints.wait()
        epochs: Sequence[Epoch] = self._trial.epochs if self._trial is not None else ()
        if isinstance(self.task.config, LanguageTrialConfig):
            epochs = self.trainer.progress.epochs
        state: FinalState = "done"
        if error is not None:
            state = "pruned" if isinstance(error, PrunedError) else "diverged"
        outcome = TrialOutcome(
            trial_id=self.task.config.trial_id,
            state=state,
            cause=str(error) if error is not None else None,
            epochs=tuple(epochs),
            measurements={name: metrics for name, (metrics, _) in measurements.items()},
            environment=self._environment,
        )
        spectra = [values for _, values in measurements.values() if values is not None]
        outcome = folder.write_result(outcome, spectra[-1] if spectra else None)
        if state == "done":
            folder.forget_checkpoints()
        folder.log(f"{outcome.state}{f': {outcome.cause}' if outcome.cause else ''}")
        return outcome


def _previous_outcome(folder: TrialFolder, worker: str) -> TrialOutcome | None:
    try:
        result = folder.result()
        if worker and result is not None and result[0].state == "failed":
            raise BusyError(f"the trial failed in another worker: {result[0].cause}")
    except DamagedFileError as error:
        folder.set_aside_result()
        folder.note(f"{error}: the trial runs again")
    return folder.outcome()


def _restore(trainer: Trainer, checkpoint: Snapshot, folder: TrialFolder) -> None:
    try:
        if not trainer.restore(*checkpoint):
            folder.note(
                "the checkpoint is from another kind of device: random generators are seeded again "
                "from seed and step"
            )
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"the checkpoints in {folder.path} are from another program version "
            f"({first_line(error)}): remove them to train from the start"
        ) from error


def prepare(runtime: Runtime) -> None:
    """Apply a runtime's threads, determinism and code to this process."""
    torch.set_num_threads(runtime.threads)
    repeat_bits(runtime.deterministic)
    for code in runtime.code:
        load_code(code)


def _training_metrics(
    trainer: Trainer, memory: PeakMemory, measuring_s: float
) -> dict[str, Metric]:
    progress = trainer.progress
    assert progress.kept_epoch is not None
    kept_epoch = progress.epochs[progress.kept_epoch - 1]
    times = [epoch.seconds for epoch in progress.epochs]
    seconds = sum(times)
    return {
        "train_perplexity": math.exp(kept_epoch.train_loss),
        "valid_perplexity": math.exp(kept_epoch.valid_loss),
        "kept_epoch": kept_epoch.epoch,
        "epochs": len(progress.epochs),
        "parameters": sum(p.numel() for p in trainer.model.parameters() if p.requires_grad),
        "seconds": seconds,
        # A worker's first epoch also warms up torch.
        "seconds_per_epoch": median(times[1:] or times),
        "tokens_per_second": progress.tokens / seconds,
        "wall_seconds": progress.wall_seconds + measuring_s,
        "peak_memory_mib": memory.peak_mib(),
    }
