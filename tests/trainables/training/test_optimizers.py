"""The optimizers take the steps of PyTorch's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from trainables.training.optimizers import EagerAdam, EagerAdamW, EagerSGD


def trained(
    make: Callable[..., torch.optim.Optimizer], steps: int = 20, **options: Any
) -> list[Tensor]:
    """Weights after so many steps, with a second group that has a rate of its own."""
    generator = torch.Generator().manual_seed(7)
    weights = [torch.randn(5, 4, generator=generator).requires_grad_() for _ in range(2)]
    groups = [{"params": weights[:1], "lr": 0.3}, {"params": weights[1:], "lr": 0.05}]
    optimizer = make(groups, weight_decay=1e-3, **options)
    for _ in range(steps):
        optimizer.zero_grad()
        inputs = torch.randn(3, 5, generator=generator)
        (inputs @ weights[0] @ weights[1].T).square().mean().backward()
        optimizer.step()
    return [weight.detach() for weight in weights]


@pytest.mark.parametrize(
    ("ours", "torchs", "options"),
    [
        (EagerSGD, torch.optim.SGD, {}),
        (EagerAdam, torch.optim.Adam, {"fused": True}),
        (EagerAdamW, torch.optim.AdamW, {"fused": True, "betas": (0.8, 0.95)}),
    ],
)
def test_steps_are_those_of_pytorch_bit_by_bit(
    ours: Callable[..., torch.optim.Optimizer],
    torchs: Callable[..., torch.optim.Optimizer],
    options: dict[str, Any],
) -> None:
    pairs = zip(
        trained(ours, **options),
        trained(torchs, **options),
        trained(ours, steps=0, **options),
        strict=True,
    )
    for weight, expected, start in pairs:
        assert torch.equal(weight, expected)
        assert not torch.equal(weight, start)
