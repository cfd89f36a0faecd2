"""Time that checkpoints cost on the disk of the results."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from torch import Tensor
from typing_extensions import override

from gpu_proof.report import NotTriedError, Question
from gpu_proof.timing import seconds_of, usual_trainer
from gpu_proof.trials import layer_config, new_trainers, random_corpus, scale_on, trial
from trainables.device import wait
from trainables.runtime import Runtime
from trainables.stack import Stack
from trainables.training import Trainer
from trainables.trial_folder import Checkpoints, TrialFolder, save_tensors

MODELS, SAVES, TIME_LIMIT_S = 4, 3, 15.0
LIMIT = 0.05
"""Largest share of time for saves that passes; training keeps to it even without a writer
thread."""


def questions(device: str, folder: Path) -> Iterator[Question]:
    """Time one save of a trial, and the saves of a stack of tiny trials."""
    yield Question("time of one save of a trial", partial(_save_seconds, device, folder), unit=" s")
    yield Question("time share of saves, tiny trials", partial(_share, device, folder), LIMIT)


def _save_seconds(device: str, folder: Path) -> float:
    scale = scale_on(device)
    trainer = usual_trainer(
        trial("ptb", layer_config("gss", "ptb", scale), "float32", scale),
        random_corpus("ptb", scale),
        device,
    )
    trainer.kept = {
        name: weight.detach().clone() for name, weight in trainer.model.named_parameters()
    }
    return [
        seconds_of(lambda: save_tensors(folder / "one", *trainer.snapshot()), device)
        for _ in range(2)
    ][1]


def _share(device: str, folder: Path) -> float:
    trainers = new_trainers(device, ["gss"] * MODELS, epoch_tokens=10**12)
    runs = [
        _TimedRun(trainer, TrialFolder(folder / str(number), ""))
        for number, trainer in enumerate(trainers)
    ]
    stack, ends_s = Stack(trainers), time.monotonic() + TIME_LIMIT_S
    while time.monotonic() < ends_s and min(len(run.saves) for run in runs) < SAVES:
        started = time.monotonic()
        stack.step()
        wait(device)
        seconds = (time.monotonic() - started) / MODELS
        for run in runs:
            run.settle(seconds)
    return sum(run.share() for run in runs)


class _CountedCheckpoints(Checkpoints):
    count = 0

    @override
    def begin(self, step: int, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        self.count += 1
        super().begin(step, tensors, state)


class _TimedRun:
    def __init__(self, trainer: Trainer, folder: TrialFolder) -> None:
        folder.path.mkdir()
        trainer.runtime = Runtime(device=trainer.runtime.device, checkpoint_every_s=0.1)
        self._trainer, self._checkpoints = trainer, _CountedCheckpoints(folder)
        # Start and duration of each `settle` in seconds.
        self._calls = list[tuple[float, float]]()
        # Indices of the calls that saved a checkpoint.
        self.saves = list[int]()

    def settle(self, step_s: float) -> None:
        saves_before, started = self._checkpoints.count, time.monotonic()
        self._trainer.settle(step_s, self._checkpoints, lambda _: None, together=MODELS)
        self._calls.append((started, time.monotonic() - started))
        if self._checkpoints.count > saves_before:
            self.saves.append(len(self._calls) - 1)

    def share(self) -> float:
        """Return the share of time that saves take, between the first and the last save.

        The median time of `settle` is subtracted. Raises NotTriedError with fewer than two saves.
        """
        if len(self.saves) < 2:
            raise NotTriedError(
                f"fewer than two saves per trial in {TIME_LIMIT_S:g} s, because the disk is slow"
            )
        calls = self._calls[self.saves[0] : self.saves[-1]]
        typical_s = median(seconds for _, seconds in self._calls)
        self._checkpoints.wait()
        elapsed = self._calls[self.saves[-1]][0] - calls[0][0]
        return sum(max(0.0, seconds - typical_s) for _, seconds in calls) / elapsed
