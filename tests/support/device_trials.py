"""Tiny trials of every output layer on a device, for tests/gpu; imports no more than those may."""

from __future__ import annotations

from typing import Any

from tests.support import tiny_trial as tiny
from trainables.config import (
    GssConfig,
    LmsPlifConfig,
    MocConfig,
    MonotoneNnConfig,
    MosConfig,
    MosPlifConfig,
    OutputLayerConfig,
    SigSoftmaxConfig,
    SoftmaxConfig,
)
from trainables.runtime import Runtime
from trainables.training import Trainer

STACKED: tuple[OutputLayerConfig, ...] = (
    SoftmaxConfig(),
    SigSoftmaxConfig(),
    GssConfig(c=-1.5, k=2.5),
    LmsPlifConfig(knots=31, limit=3.0),
    MosConfig(mixtures=2, latent_dropout=0.3),
    MocConfig(mixtures=2, latent_dropout=0.3),
    MosPlifConfig(knots=20, mixtures=2),
)
"""Those that a stack has."""
LAYERS = (*STACKED, MonotoneNnConfig(units=5))


def trainer_on(
    device: str, layer: OutputLayerConfig, *, seed: int = 7, dropout: bool = True, **training: Any
) -> Trainer:
    """A new trainer of the tiny trial."""
    config = tiny.trial(output_layer=layer, dropout=dropout, **training).model_copy(update={"seed": seed})
    return Trainer(config, tiny.corpus(), Runtime(device=device))


def losses(trainer: Trainer, steps: int) -> list[float]:
    """Those of so many steps, in nats per token."""
    values = []
    for _ in range(steps):
        loss, tokens = trainer.epoch_loss.item(), trainer.progress.epoch_tokens
        trainer.step()
        values.append((trainer.epoch_loss.item() - loss) / (trainer.progress.epoch_tokens - tokens))
        trainer.epoch_is_over()
    return values
