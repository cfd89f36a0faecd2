"""Stacks of several sizes are timed on a device, and nothing of them stays there."""

from __future__ import annotations

import pytest
import torch

from tests.support import tiny_trial as tiny
from tests.support.device_trials import STACKED
from trainables.runtime import Runtime
from trainables.stack import choice


def test_sizes_are_timed_and_memory_given_back(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "load", lambda *_, **__: tiny.corpus())
    configs = [tiny.trial(output_layer=layer) for layer in STACKED[:5]]
    before = torch.cuda.memory_allocated() if device == "cuda" else 0
    rates = choice.measured_rates(configs, Runtime(device=device))
    assert list(rates) == [1, 2, 4, 5] and min(rates.values()) > 0
    after = torch.cuda.memory_allocated() if device == "cuda" else 0
    # What cuBLAS keeps to work in: for two threads and two streams, torch's own and that of the
    # last graphs.
    assert after - before <= 4 * 32 * 2**20
