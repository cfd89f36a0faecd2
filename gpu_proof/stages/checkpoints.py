"""Time that checkpoints cost on the disk of the results."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median

from gpu_proof.report import Question
from gpu_proof.timing import seconds_of, usual_trainer
from gpu_proof.trials import layer_config, new_trainers, random_corpus, scale_on, trial
from trainables.device import on_gpu, wait
from trainables.runtime import Runtime
from trainables.stack import Stack
from trainables.training import Trainer
from trainables.trial_folder import Checkpoints, TrialFolder, save_tensors

SAVES, MOST_S = 4, 20.0
"""Saves of each trial that the run has at least, and its longest time."""
LIMIT = 0.06
"""Share of the time; the training loop allows 0.05 for the save alone, and looks at the clock after each step."""


def questions(device: str, folder: Path) -> Iterator[Question]:
    """One save of a trial at paper shapes, and a run of the training loop with small trials."""
    yield Question("seconds of one save of a trial", partial(_save_seconds, device, folder), unit=" s")
    yield Question(
        "share of the time, small trials", partial(_share, device, folder, 16 if on_gpu(device) else 4), LIMIT
    )


def _save_seconds(device: str, folder: Path) -> float:
    """The second of two saves."""
    scale = scale_on(device)
    trainer = usual_trainer(
        trial("ptb", layer_config("gss", "ptb", scale), "float32", scale), random_corpus("ptb", scale), device
    )
    trainer.kept = {name: weight.detach().clone() for name, weight in trainer.model.named_parameters()}
    return [seconds_of(lambda: save_tensors(folder / "one", *trainer.snapshot()), device) for _ in range(2)][1]


def _share(device: str, folder: Path, models: int) -> float:
    """Share of a stack's time that its trials spend after steps, over whole rounds of saves.

    Each trial is watched from its first save to its last one. The time of a usual call, without a save, does not count.
    """
    trainers = new_trainers(device, ["gss"] * models, epoch_tokens=10**12)
    watched = [_Watched(trainer, TrialFolder(folder / str(number), "")) for number, trainer in enumerate(trainers)]
    stack, ends_s = Stack(trainers), time.monotonic() + MOST_S
    while time.monotonic() < ends_s and min(len(one.saves) for one in watched) < SAVES:
        started = time.monotonic()
        stack.step()
        wait(device)
        seconds = (time.monotonic() - started) / models
        for one in watched:
            one.settle(seconds, models)
    return sum(one.share() for one in watched)


class _Watched:
    """A trial of a stack, and the time of its calls."""

    def __init__(self, trainer: Trainer, folder: TrialFolder) -> None:
        folder.path.mkdir()
        trainer.runtime = Runtime(device=trainer.runtime.device, checkpoint_every_s=0.1)
        self._trainer, self._folder, self._checkpoints = trainer, folder, Checkpoints(folder)
        self._calls = list[tuple[float, float]]()
        """Start and duration."""
        self.saves = list[int]()
        """Numbers of the calls that saved."""

    def settle(self, step_s: float, together: int) -> None:
        before, started = self._folder.checkpoints()[-1:], time.monotonic()
        self._trainer.settle(step_s, self._checkpoints, lambda _: None, together=together)
        self._calls.append((started, time.monotonic() - started))
        if self._folder.checkpoints()[-1:] != before:
            self.saves.append(len(self._calls) - 1)

    def share(self) -> float:
        """Of the time from the first save until before the last one. Raises RuntimeError with fewer than two."""
        if len(self.saves) < 2:
            raise RuntimeError(f"fewer than two saves in {MOST_S:g} s")
        calls = self._calls[self.saves[0] : self.saves[-1]]
        usual = median(seconds for _, seconds in self._calls)
        elapsed = self._calls[self.saves[-1]][0] - calls[0][0]
        return sum(max(0.0, seconds - usual) for _, seconds in calls) / elapsed
