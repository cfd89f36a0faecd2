"""Bitwise comparison of steps with and without CUDA graphs, while trials join and leave."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from gpu_proof.report import Question
from gpu_proof.trials import TRIALS, Model, new_trainers, numbers_of, scale_on
from trainables.config import EtAsgdConfig
from trainables.device import Graphs, on_gpu, repeat_bits
from trainables.stack import Stack

LAYERS = ("gss", "softmax", "lms_plif", "softcap")
STEPS = {"cuda": (70, 60, 70), "cpu": (7, 6, 7)}
"""Steps in three parts: a trial leaves after the first, another joins after the second."""
# Averaging starts in the second epoch.
EPOCH_TOKENS = {"tiny": 300, "paper": 40_000}


def questions(device: str, _folder: Path) -> Iterator[Question]:
    """Compare stacks of both kinds of model. A CPU captures nothing."""
    for model in TRIALS:
        yield Question(
            f"share of tensors whose bits differ after {sum(STEPS[device])} steps, {model}",
            partial(_changed_share, device, model),
            0,
        )


def _changed_share(device: str, model: Model) -> float:
    repeat_bits(True)
    captures = list[None]()
    capture = Graphs.captured

    def count_capture(graphs: Graphs, work: Callable[[], None]) -> Callable[[], None]:
        captures.append(None)
        return capture(graphs, work)

    with patch.object(Graphs, "captured", count_capture):
        results = _tensors(device, model)
    if on_gpu(device) and not captures:
        raise RuntimeError("no step was captured")
    with patch("trainables.stack.stack.MOST_GRAPHS", 0):
        expected = _tensors(device, model)
    matches = [
        torch.equal(result, tensor) for result, tensor in zip(results, expected, strict=True)
    ]
    return 1 - sum(matches) / len(matches)


def _tensors(device: str, model: Model) -> list[Tensor]:
    scale = scale_on(device) if model == "awd_lstm" else "tiny"
    training: dict[str, Any] = {"epoch_tokens": EPOCH_TOKENS[scale]}
    if model == "awd_lstm":
        training["averaging"] = EtAsgdConfig(switch_epoch=1)
    *members, later = trainers = new_trainers(device, LAYERS, model, scale, **training)
    for steps in STEPS[device]:
        stack = Stack(members)
        for _ in range(steps):
            stack.step()
            for trainer in members:
                if trainer.ends_epoch:
                    trainer.end_epoch()
        if members[0] is trainers[0]:
            stack.leave(members.pop(0))
        elif later not in members:
            members.append(later)
    return [tensor.cpu() for trainer in trainers for tensor in numbers_of(trainer).values()]
