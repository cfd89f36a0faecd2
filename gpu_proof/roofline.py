"""Best-case time of a stack's step on a GPU.

Costs are for a stack of sixteen of the papers' AWD-LSTMs in bf16, with weight averaging and windows
of 70 tokens. They were counted on torch's device "meta" (27 November 2026).
"""

from __future__ import annotations

from typing import NamedTuple

MODELS = 16
WINDOW = 70
"""Mean length of a window, in tokens."""
KERNEL_S = 1.5e-6
"""Overhead per kernel of a replayed CUDA graph."""


class Work(NamedTuple):
    """Cost of all kernels of one kind.

    `gigabytes` counts bytes read and bytes written, `teraflop` only matrix products.
    """

    kernels: int
    gigabytes: float
    teraflop: float


class StepCost(NamedTuple):
    """Work of one step of a stack."""

    elementwise: Work
    products: Work
    recurrent: Work
    """Hidden-to-hidden products: one per time step, each with B rows."""


class Card(NamedTuple):
    """Measured rates of a GPU.

    `copy_tb_s` counts bytes read and bytes written; `product_tflop_s` is for large square matrices.
    """

    copy_tb_s: float
    product_tflop_s: float


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
"""Costs by corpus and output layer."""
# A recurrent product, with a batch of 20, fills only part of a tile's 64 rows.
SHARES = ((0.85, 1.0), (0.85, 0.6), (0.7, 0.3))
"""Shares of a GPU's copy rate and product rate that the three kinds of work reach."""


def step_seconds(cost: StepCost, card: Card) -> float:
    """Predict the seconds of a step. Memory traffic or products limit each kind of work."""
    return sum(
        max(
            1e-3 * work.gigabytes / (card.copy_tb_s * copy_share),
            work.teraflop / (card.product_tflop_s * product_share),
        )
        + KERNEL_S * work.kernels
        for work, (copy_share, product_share) in zip(cost, SHARES, strict=True)
    )
