"""GPU memory that a stack's steps use, compared with the memory planned for the stack."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

import torch

from gpu_proof.report import Question
from gpu_proof.timing import Headline
from trainables.device import forget_cache

STACKS = (
    Headline("ptb", "gss", "float32", 16),
    Headline("ptb", "mos", "bf16", 16),
    Headline("wikitext-2", "gss", "bf16", 16),
)
STEPS = 12
PLAN_LIMIT = 4.0
"""Largest ratio of planned to peak memory that passes; larger plans waste GPU memory."""


def questions(device: str, _folder: Path) -> Iterator[Question]:
    """Compare peak and planned GPU memory of stacks of 16 models."""
    for stack in STACKS:
        plan = stack.planned_bytes(device)
        peak = cache(partial(_peak_bytes, device, stack))
        yield Question(
            f"peak, {stack}", partial(lambda peak: peak() / 2**30, peak), plan / 2**30, " GiB"
        )
        yield Question(
            f"plan over peak, {stack}",
            partial(lambda plan, peak: plan / peak(), plan, peak),
            PLAN_LIMIT,
        )


def _peak_bytes(device: str, headline: Headline) -> float:
    stack = headline.stack(device)
    forget_cache(device)
    torch.cuda.reset_peak_memory_stats()
    for trainer in stack.trainers:
        trainer.kept = {
            name: weight.detach().clone() for name, weight in trainer.model.named_parameters()
        }
    draws = [trainer.draws.get_state() for trainer in stack.trainers]
    for _ in range(2):
        for trainer, state in zip(stack.trainers, draws, strict=True):
            trainer.draws.set_state(state)
        for _ in range(STEPS):
            stack.step()
    return torch.cuda.max_memory_reserved()
