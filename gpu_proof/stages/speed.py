"""Time of a stack's step, compared with the prediction of `gpu_proof.roofline`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from gpu_proof.report import Check, Question
from gpu_proof.roofline import COSTS, MODELS, WINDOW, Card, step_seconds
from gpu_proof.timing import Headline, ceilings, stack_pace
from trainables.device import on_gpu

STACKS = (
    ("ptb", "softmax"),
    ("ptb", "gss"),
    ("ptb", "lms_plif"),
    ("ptb", "mos"),
    ("wikitext-2", "gss"),
)
MATRIX = 8192
LIMIT = 2.0
"""Largest ratio of measured to predicted time that passes."""


def questions(device: str, _folder: Path) -> Iterator[Question | Check]:
    """Compare each stack's step with the prediction from measured rates."""
    if not on_gpu(device):
        for corpus, layer in STACKS:
            headline = Headline(corpus, layer, "bf16", 2)
            yield Question(f"step of {headline}", partial(_step_ms, device, headline), unit=" ms")
        return
    rates = ceilings(["bf16"], device, MATRIX)
    card = Card(1e-3 * rates.copy_gb_s, rates.tflop_s["bf16"])
    yield Check(
        "rates",
        "INFO",
        f"products {card.product_tflop_s:.0f} TFLOP/s, copies {card.copy_tb_s:.2f} TB/s",
        card._asdict(),
    )
    for corpus, layer in STACKS:
        headline, predicted_ms = (
            Headline(corpus, layer, "bf16", MODELS),
            1e3 * step_seconds(COSTS[corpus, layer], card),
        )
        measure = partial(_step_ms, device, headline)
        yield Question(
            f"step of {headline}",
            measure,
            LIMIT * predicted_ms,
            " ms",
            {"prediction": predicted_ms},
        )


def _step_ms(device: str, headline: Headline) -> float:
    # Timed windows differ in length, so the time is scaled to the prediction's window.
    stack = headline.stack(device)
    pace = stack_pace(stack, steps=8 if on_gpu(device) else 1)
    tokens = WINDOW * stack.trainers[0].config.training.batch_size * headline.models
    return 1e3 * pace.seconds * tokens / pace.tokens
