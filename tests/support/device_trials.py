"""Tiny trials of every layer in the GPU benchmark.

Imports only what tests/gpu may import.
"""

from __future__ import annotations

from typing import Any

import torch

from gpu_proof import trials
from gpu_proof.trials import layer_config
from tests.support import tiny_trial as tiny
from trainables.config import OutputLayerConfig
from trainables.runtime import Runtime
from trainables.training import Trainer

STACKED: tuple[OutputLayerConfig, ...] = tuple(
    layer_config(name, "ptb", "tiny") for name in trials.STACKED
)
LAYERS = tuple(layer_config(name, "ptb", "tiny") for name in trials.LAYERS)
COMPARED = LAYERS if torch.cuda.is_available() else (LAYERS[0], *STACKED[5:7], LAYERS[-1])
"""Layers to compare between GPU and CPU. Without a GPU, a few layers suffice."""


def trainer_on(
    device: str, layer: OutputLayerConfig, *, seed: int = 7, dropout: bool = True, **training: Any
) -> Trainer:
    config = tiny.trial(output_layer=layer, dropout=dropout, **training).model_copy(
        update={"seed": seed}
    )
    return Trainer(config, tiny.corpus(), Runtime(device=device))


def assert_same_bits(trainer: Trainer, expected: Trainer) -> None:
    result = trainer.snapshot()[0]
    for name, tensor in expected.snapshot()[0].items():
        if "random.global" not in name:
            assert torch.equal(result[name], tensor), name


def losses(trainer: Trainer, steps: int) -> list[float]:
    """Train `steps` steps and return their losses, in nats per token."""
    values = []
    for _ in range(steps):
        loss, tokens = trainer.epoch_loss.item(), trainer.progress.epoch_tokens
        trainer.step()
        values.append((trainer.epoch_loss.item() - loss) / (trainer.progress.epoch_tokens - tokens))
    return values
