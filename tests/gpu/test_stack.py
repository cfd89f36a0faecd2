from __future__ import annotations

import pytest
import torch

from tests.support.device_trials import STACKED, assert_same_bits, trainer_on
from trainables.stack import Stack
from trainables.training import Trainer


@pytest.mark.usefixtures("same_bits")
def test_graphs_outlive_another_stack(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dropping a CUDA graph frees cuBLAS's workspace, which other graphs may still need."""

    def after_another() -> list[Trainer]:
        trainers, other_trainers = (
            [trainer_on(device, STACKED[2], seed=seed) for seed in seeds]
            for seeds in ((1, 2), (3, 4))
        )
        stack, other_stack = Stack(trainers), Stack(other_trainers)
        for _ in range(30):
            stack.step()
            other_stack.step()
        del other_stack
        if device == "cuda":
            torch.cuda.empty_cache()
        for _ in range(30):
            stack.step()
        return trainers

    replayed = after_another()
    monkeypatch.setattr("trainables.stack.stack.MOST_GRAPHS", 0)
    for trainer, expected in zip(replayed, after_another(), strict=True):
        assert_same_bits(trainer, expected)
