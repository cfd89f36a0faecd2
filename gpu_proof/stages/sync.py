"""Checks that final steps never wait for the GPU: torch raises at every synchronisation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import torch

from gpu_proof.report import Question
from gpu_proof.trials import LAYERS, STACKED, TRIALS, Model, new_trainers
from trainables.stack import Stack

# Enough to capture most window lengths.
STEPS = {"awd_lstm": 150, "transformer": 20}
LAST_STEPS = 10


def questions(device: str, _folder: Path) -> Iterator[Question]:
    """Check steps of lone trials, and first and replayed steps of a stack."""
    for name in LAYERS:
        yield Question(f"a step alone, {name}", partial(_steps_alone, device, name))
    yield Question("first steps of a stack", partial(_steps_together, device, "awd_lstm", 5, 3))
    for model in TRIALS:
        yield Question(
            f"replayed steps of a stack, {model}",
            partial(_steps_together, device, model, STEPS[model], LAST_STEPS),
        )


def _steps_alone(device: str, name: str) -> str:
    [trainer] = new_trainers(device, [name])
    return _steps(trainer.step, steps=5, last_steps=3)


def _steps_together(device: str, model: Model, steps: int, last_steps: int) -> str:
    trainers = new_trainers(device, STACKED, model)
    return _steps(Stack(trainers).step, steps, last_steps)


def _steps(step: Callable[[], None], steps: int, last_steps: int) -> str:
    for number in range(steps):
        torch.cuda.set_sync_debug_mode("error" if number >= steps - last_steps else "default")
        try:
            step()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    return f"{last_steps} steps without a wait"
