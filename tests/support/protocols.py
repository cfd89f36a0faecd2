"""References for training: the same weights trained in float64 and compared after every step."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from trainables.training import Trainer


class FloatingReference:
    def __init__(self, trainer: Trainer, tokens: np.ndarray) -> None:
        self.at = {
            name: weight.detach().double().clone().requires_grad_(weight.requires_grad)
            for name, weight in trainer.model.named_parameters()
        }
        self.names = [name for name, weight in self.at.items() if weight.requires_grad]
        batch = trainer.config.training.batch_size
        length = len(tokens) // batch
        self.streams = [tokens[b * length : (b + 1) * length] for b in range(batch)]
        self.moments = {
            name: (torch.zeros_like(self.at[name]), torch.zeros_like(self.at[name]))
            for name in self.names
        }
        self.steps = self.tokens = 0

    def clipped_gradients(self, loss: Tensor, clip: float) -> dict[str, Tensor]:
        gradients = torch.autograd.grad(loss, [self.at[name] for name in self.names])
        norm = math.sqrt(sum(float((gradient**2).sum()) for gradient in gradients))
        scale = min(1.0, clip / (norm + 1e-6))
        return {
            name: gradient * scale for name, gradient in zip(self.names, gradients, strict=True)
        }

    def adam(self, name: str, gradient: Tensor, betas: tuple[float, float]) -> Tensor:
        """Return Adam's update without the learning rate (Kingma and Ba 2015, algorithm 1)."""
        mean, square = self.moments[name]
        mean += (1 - betas[0]) * (gradient - mean)
        square += (1 - betas[1]) * (gradient**2 - square)
        root = (square / (1 - betas[1] ** self.steps)).sqrt()
        return (mean / (1 - betas[0] ** self.steps)) / (root + 1e-8)

    def assert_agrees(self, trainer: Trainer, step: Callable[[], float], steps: int) -> None:
        for _ in range(steps):
            expected = step()
            trainer.step()
            loss = trainer.epoch_loss.item() / trainer.progress.epoch_tokens
            trainer.epoch_loss.zero_()
            trainer.progress.epoch_tokens = 0
            assert loss == pytest.approx(expected, rel=1e-4)
        for name, weight in trainer.model.named_parameters():
            difference = (weight.detach().double() - self.at[name].detach()).abs().max()
            assert difference < 2e-4, name
