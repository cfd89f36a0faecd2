from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from trainables.training.optimizers import EagerAdam, EagerAdamW, EagerSGD


def trained(make: Callable[..., torch.optim.Optimizer], **options: Any) -> Tensor:
    weights = torch.randn(2, 5, generator=torch.Generator().manual_seed(7))
    first, second = weights[0].requires_grad_(), weights[1].requires_grad_()
    groups = [{"params": [first], "lr": 0.3}, {"params": [second], "lr": 0.05}]
    optimizer = make(groups, weight_decay=1e-3, **options)
    for step in range(20):
        optimizer.zero_grad()
        (first.sin() * second * step).square().mean().backward()
        optimizer.step()
    return torch.cat([first, second]).detach()


@pytest.mark.parametrize(
    ("our_class", "torch_class", "options"),
    [
        (EagerSGD, torch.optim.SGD, {}),
        (EagerAdam, torch.optim.Adam, {"fused": True}),
        (EagerAdamW, torch.optim.AdamW, {"fused": True, "betas": (0.8, 0.95)}),
    ],
)
def test_steps_equal_pytorch_bit_by_bit(
    our_class: Callable[..., torch.optim.Optimizer],
    torch_class: Callable[..., torch.optim.Optimizer],
    options: dict[str, Any],
) -> None:
    assert torch.equal(trained(our_class, **options), trained(torch_class, **options))
