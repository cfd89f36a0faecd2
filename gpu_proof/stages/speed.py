"""Time of a stack's step against the roofline's prediction."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from gpu_proof.report import Question
from gpu_proof.roofline import predicted_step_seconds
from gpu_proof.timing import Headline, stack_pace
from trainables.device import gpu_name, on_gpu

STACKS = (("ptb", "softmax"), ("ptb", "gss"), ("ptb", "lms_plif"), ("ptb", "mos"), ("wikitext-2", "gss"))
WINDOW = 70
MOST = 2.0
"""Largest time that passes, as a multiple of the prediction."""


def questions(device: str, _folder: Path) -> Iterator[Question]:
    """Time one step of each stack, in ms; without a prediction for this GPU it is only reported."""
    for corpus, layer in STACKS:
        headline = Headline(corpus, layer, "bf16", 16 if on_gpu(device) else 2)
        seconds = predicted_step_seconds(*headline, gpu_name()) if on_gpu(device) else None
        predicted_ms = None if seconds is None else 1e3 * seconds
        limit_ms = None if predicted_ms is None else MOST * predicted_ms
        ask = partial(_step_ms, device, headline)
        yield Question(f"step of {headline}", ask, limit_ms, " ms", {"prediction": predicted_ms})


def _step_ms(device: str, headline: Headline) -> float:
    """Return the ms of a step, scaled to a window of 70: the windows that are timed differ in length."""
    stack = headline.stack(device)
    pace = stack_pace(stack, steps=8 if on_gpu(device) else 1)
    tokens = WINDOW * stack.trainers[0].config.training.batch_size * headline.models
    return 1e3 * pace.seconds * tokens / pace.tokens
