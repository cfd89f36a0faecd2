"""How long a step of a stack takes at best on a GPU, from what the step asks of it.

The costs are those of sixteen AWD-LSTMs of the papers in bf16, averaging their weights, with a
window of 70 tokens. They were counted on the device "meta" on 27 November 2026."""

from __future__ import annotations

from typing import NamedTuple

MODELS = 16
WINDOW = 70
"""Tokens: the mean length of a window."""
KERNEL_S = 1.5e-6
"""Overhead of a replayed kernel, in seconds."""


class Work(NamedTuple):
    """Cost of all kernels of one kind."""

    kernels: int
    gigabytes: float
    """Read and written."""
    teraflop: float
    """Of matrix products."""


class StepCost(NamedTuple):
    """One step of a stack."""

    elementwise: Work
    """Everything except matrix products."""
    products: Work
    recurrent: Work
    """Products with the hidden state of a time step, which have as many rows as the batch."""


class Card(NamedTuple):
    """Rates that a GPU reaches."""

    copy_tb_s: float
    """Read and written by a copy, in terabytes a second."""
    product_tflop_s: float
    """Of a product of large square matrices."""


COSTS: dict[tuple[str, str], StepCost] = {
    ("ptb", "softmax"): StepCost(
        Work(927, 26.56, 0.0), Work(15, 6.57, 2.246), Work(417, 51.59, 0.998)
    ),
    ("ptb", "gss"): StepCost(Work(927, 26.56, 0.0), Work(15, 6.57, 2.246), Work(417, 51.59, 0.998)),
    ("ptb", "lms_plif"): StepCost(
        Work(981, 27.62, 0.0), Work(15, 6.57, 2.246), Work(417, 51.59, 0.998)
    ),
    ("ptb", "mos"): StepCost(
        Work(1051, 36.6, 0.0), Work(30, 18.39, 4.414), Work(417, 40.58, 0.476)
    ),
    ("wikitext-2", "gss"): StepCost(
        Work(1012, 73.05, 0.0), Work(30, 45.47, 13.989), Work(417, 56.65, 3.993)
    ),
    ("wikitext-2", "mos"): StepCost(
        Work(1271, 92.07, 0.0), Work(66, 86.67, 16.779), Work(417, 55.96, 0.819)
    ),
}
"""By corpus and output layer."""
SHARES = ((0.85, 1.0), (0.85, 0.6), (0.7, 0.3))
"""Share of the copy and product rates that each kind of work reaches; a tile of 64 rows holds the
20 of a batch."""


def step_seconds(cost: StepCost, card: Card) -> float:
    """Each kind of work is bound by memory or by products."""
    return sum(
        max(
            1e-3 * work.gigabytes / (card.copy_tb_s * of_copy),
            work.teraflop / (card.product_tflop_s * of_product),
        )
        + KERNEL_S * work.kernels
        for work, (of_copy, of_product) in zip(cost, SHARES, strict=True)
    )
