"""How many trials are trained as one: the rule, and that the timing of it leaves no trace."""

from __future__ import annotations

import pytest
import torch

from tests.trainables.trial.test_transformer_run import smoke as transformer
from tests.trainables.trial.test_trial_run import smoke_trial
from trainables.config import MosConfig, SoftmaxConfig, TrialConfig
from trainables.runtime import Runtime
from trainables.stack import throughput
from trainables.stack.throughput import best_size, measured_rates

MIXED = (SoftmaxConfig(), MosConfig(mixtures=2), SoftmaxConfig())


@pytest.fixture(autouse=True)
def nothing_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throughput, "_measured", {})


def mixed() -> list[TrialConfig]:
    return [
        smoke_trial().model_copy(update={"output_layer": layer, "seed": n})
        for n, layer in enumerate(MIXED)
    ]


@pytest.mark.parametrize(
    ("rates", "best"),
    [
        ({1: 10.0}, 1),
        ({1: 100.0, 2: 190.0, 4: 290.0, 8: 301.0, 16: 310.0}, 8),
        ({1: 100.0, 2: 190.0, 4: 295.0, 8: 300.0, 16: 310.0}, 4),
        ({1: 100.0, 2: 190.0, 4: 100.0, 8: 90.0}, 2),
        ({1: 95.0, 16: 100.0}, 1),
        ({1: 94.9, 16: 100.0}, 16),
    ],
)
def test_the_fewest_trials_that_are_nearly_as_fast_as_any(
    rates: dict[int, float], best: int
) -> None:
    assert best_size(rates) == best


@pytest.mark.parametrize(
    ("trials", "sizes"),
    [(1, [1]), (2, [1, 2]), (6, [1, 2, 4, 6]), (16, [1, 2, 4, 8, 16]), (20, [1, 2, 4, 8, 16, 20])],
)
def test_sizes_double_and_end_with_all(trials: int, sizes: list[int]) -> None:
    assert list(throughput._sizes(trials)) == sizes


def test_timing_touches_no_random_stream_and_is_done_once(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    rates = measured_rates(mixed(), Runtime())
    assert list(rates) == [1, 2, 3] and min(rates.values()) > 0
    assert torch.equal(torch.get_rng_state(), before)
    monkeypatch.setattr(throughput, "Stack", None)
    assert measured_rates(mixed(), Runtime()) == rates


def test_transformers_are_timed_in_windows_of_their_own() -> None:
    rates = measured_rates([transformer(layer) for layer in MIXED], Runtime())
    assert list(rates) == [1, 2, 3] and min(rates.values()) > 0


@pytest.mark.parametrize(("room", "sizes"), [(1, [1]), (0, [])])
def test_sizes_that_the_memory_does_not_take_are_left_out(
    room: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Small(throughput.Stack):
        def __init__(self, trainers: list[throughput.Trainer]) -> None:
            if len(trainers) > room:
                raise torch.OutOfMemoryError
            super().__init__(trainers)

    monkeypatch.setattr(throughput, "Stack", Small)
    assert list(measured_rates(mixed(), Runtime())) == sizes
