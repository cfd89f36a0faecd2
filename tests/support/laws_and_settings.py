"""Synthetic trials for tests of the analyses.

Either the loss is a power law of a size, or settings affect both a rank and the loss.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from search_spaces.laws import Threshold
from tests.support.synthetic_results import trial_row

RANKS = (2, 4, 8, 16, 32, 64)
SETTINGS = (
    "training.batch_size",
    "training.weight_decay",
    "training.learning_rate",
    "training.epochs",
)
LEARNED_AT = Threshold(
    x="model.embedding_width",
    by="output_layer.name",
    baseline="softmax",
    over="corpus.name",
    over_name="V",
    metric="excess_cross_entropy",
    value=0.1,
)
LEVELS = ((8, 16, 32), (0.01, 0.1, 0.3), (0.1, 0.3, 1.0), (2, 4, 8, 16))


def numbered(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "trial_id": f"{index:064x}"} for index, row in enumerate(rows)]


def _row(name: str, loss: float, config: dict[str, Any], **ranks: float) -> dict[str, Any]:
    return trial_row(name, config=config, test_perplexity=math.exp(loss), **ranks)


def head_rank_rows(
    factors: Mapping[str, float],
    *,
    kinds: Sequence[str] = ("transformer",),
    seeds: int = 3,
    deviation: float = 0.01,
) -> list[dict[str, Any]]:
    """Return trials whose loss at head rank r is 4 + 2 (m r)^-0.6; m is the layer's factor."""
    rng, rows = np.random.default_rng(0), []
    for kind, (layer, factor), rank, seed in product(
        kinds, factors.items(), RANKS, range(1, seeds + 1)
    ):
        loss = 4 + 2 * (factor * rank) ** -0.6 + rng.normal(0, deviation)
        config = {
            "kind": kind,
            "seed": seed,
            "model": {"head_rank": rank},
            "output_layer": {"name": layer},
        }
        rows.append(_row(f"{kind} {layer} r={rank} seed={seed}", loss, config))
    return numbered(rows)


def width_rows(
    excess: Mapping[int, float],
    *,
    widths: Sequence[int] = (8, 16, 32, 64, 96, 128, 192),
    seeds: int = 3,
    seed: int = 1,
) -> list[dict[str, Any]]:
    """Return trials whose loss at width w is 3.5 + 6 w^-0.5, plus `excess` at some widths."""
    rng, rows = np.random.default_rng(seed), []
    for width, seed in product(widths, range(1, seeds + 1)):
        loss = 3.5 + 6 * width**-0.5 + excess.get(width, 0.0) + rng.normal(0, 0.005)
        config = {"kind": "transformer", "seed": seed, "model": {"width": width}}
        rows.append(_row(f"w={width} seed={seed}", loss, config))
    return numbered(rows)


def spam_rows(
    factors: Mapping[str, float],
    *,
    symbols: Sequence[int] = (500, 1000, 2000, 4000),
    widths: Sequence[int] = (4, 8, 16, 32, 64),
    seeds: int = 3,
    deviation: float = 0.05,
) -> list[dict[str, Any]]:
    """Return trials on spam-V at width d. Their loss is the entropy plus 0.1 (m w(V) / d)^3.

    w(V) = V^0.4, and m is the layer's factor. So the excess over the entropy is 0.1 at d = m w(V).
    """
    rng, rows = np.random.default_rng(3), []
    for number, width, (layer, factor), seed in product(
        symbols, widths, factors.items(), range(1, seeds + 1)
    ):
        gap = 0.1 * (factor * number**0.4 / width) ** 3 * math.exp(rng.normal(0, deviation))
        config = {
            "seed": seed,
            "corpus": {"name": f"spam-{number}"},
            "model": {"embedding_width": width},
            "output_layer": {"name": layer},
        }
        name = f"{layer} V={number} d={width} seed={seed}"
        rows.append(_row(name, gap + math.log(number) / 8, config))
    return numbered(rows)


def settings_rows() -> list[dict[str, Any]]:
    """Return 108 trials whose metrics are linked to the loss in different ways.

    `press_rank` and the loss depend on the same settings, two of which interact, and on nothing
    else in common. `entropy_rank` falls with the loss at any settings. `kl_rank_1e-3` is nearly
    constant.
    """
    rng = np.random.default_rng(2)
    rows: list[dict[str, Any]] = []
    for batch, decay, rate, epochs in product(*LEVELS):
        common, loss_alone, rank_alone = rng.normal(size=3)
        moved = math.log(batch / 16) * (decay - 0.13) * 4
        loss = 4 - 0.1 * math.log(epochs) + moved + 0.05 * (common + loss_alone)
        training = {
            "batch_size": batch,
            "weight_decay": decay,
            "learning_rate": rate,
            "epochs": epochs,
        }
        ranks = {
            "press_rank": math.exp(4 + 0.3 * math.log(epochs) - 2 * moved + 0.1 * rank_alone),
            "entropy_rank": math.exp(3 + 0.3 * math.log(epochs) - 0.1 * common),
            "kl_rank_1e-3": 33 if len(rows) % 20 else 32,
        }
        name = f"B={batch} wd={decay:g} lr={rate:g} epochs={epochs}"
        config = {"kind": "transformer", "seed": 1, "training": training}
        rows.append(_row(name, loss, config, **ranks))
    return numbered(rows)
