from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from gpu_proof import parts
from gpu_proof.report import compare
from gpu_proof.stages import exact
from trainables.stack import Stack

TINY = exact.StackShape(vocabulary=40, width=8, models=3, rows=37)


def passes(error: float, name: str) -> bool:
    question = next(
        question for question in exact.questions("cpu", Path()) if question.name == name
    )
    return compare(question, error).result == "PASS"


@pytest.mark.parametrize(("optimizer", "wrong"), [("sgd", 1e-5), ("adamw", float("nan"))])
def test_slightly_wrong_stack_fails(
    monkeypatch: pytest.MonkeyPatch, wrong: float, optimizer: exact.Optimizer
) -> None:
    step = Stack.step

    def off(stack: Stack) -> None:
        step(stack)
        with torch.no_grad():
            stack.trainers[0].model.embedding_VD[3, 2] += wrong

    monkeypatch.setattr(Stack, "step", off)
    error = exact.stack_error("cpu", optimizer)
    assert not passes(error, f"a stack's weights in float64, {optimizer}")


@pytest.mark.parametrize("tensor", ["loss", "hidden", "embedding_VD", "output.function.weight_K"])
def test_slightly_wrong_gradient_fails(monkeypatch: pytest.MonkeyPatch, tensor: str) -> None:
    losses = parts.stacked_losses

    def off(*of_losses: Any) -> dict[str, torch.Tensor]:
        results = losses(*of_losses)
        return results | {tensor: results[tensor] * 1.01}

    name = "loss and gradients of 3 models, float32, ptb, lms_plif"
    assert passes(exact.stacked_loss_error("cpu", "lms_plif", TINY, "float32"), name)
    monkeypatch.setattr(exact, "stacked_losses", off)
    assert not passes(exact.stacked_loss_error("cpu", "lms_plif", TINY, "float32"), name)
