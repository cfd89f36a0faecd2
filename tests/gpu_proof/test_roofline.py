"""What a step asks of a GPU may not grow unseen: the costs from which `prove-gpu` predicts seconds
are the code's."""

from __future__ import annotations

import pytest

from gpu_proof.roofline import CARDS, COSTS

pytest.importorskip("triton", reason="Triton is there for Linux alone")

GOALS_S = {"softmax": (1.3, 1.7), "gss": (1.3, 1.7), "lms_plif": (1.8, 2.2), "mos": (2.5, 3.2)}
"""Seconds of an epoch on Penn Treebank at most, on an H200 and on an H100."""
PLIF_ATOMICS_S = 0.4
"""Of it, what atomic additions may take, which move few bytes: 0.3 to 0.9 s before their kernel had
16 warps."""


MANY_OPERATIONS = 1e11
"""Of a product whose factors' rows have to be aligned, like those of all time steps. Fewer have
those with priors, and with the gradient by WikiText-2's 15 x 300 latent contexts."""


@pytest.mark.parametrize(("corpus", "layer"), COSTS)
def test_a_step_asks_what_is_written_down(corpus: str, layer: str) -> None:
    from tests.gpu_proof.step_cost import cost_of, events_of_a_step

    events = events_of_a_step(corpus, layer)
    for event in events:
        assert event.aligned or (not event.recurrent and event.operations <= MANY_OPERATIONS)
    for work, known in zip(cost_of(events), COSTS[corpus, layer], strict=True):
        assert work.kernels == known.kernels
        assert work.gigabytes == pytest.approx(known.gigabytes, rel=1e-3)
        assert work.teraflop == pytest.approx(known.teraflop, rel=1e-3)


@pytest.mark.parametrize("layer", GOALS_S)
def test_by_arithmetic_an_epoch_takes_no_longer_than_the_goal(layer: str) -> None:
    from tests.gpu_proof.step_cost import seconds_an_epoch

    for card, goal_s in zip(("H200", "H100"), GOALS_S[layer], strict=True):
        predicted_s = seconds_an_epoch("ptb", layer, COSTS["ptb", layer], CARDS[card])
        print(f"{layer} on an {card}: {predicted_s:.2f} s an epoch")
        assert round(predicted_s + (PLIF_ATOMICS_S if layer == "lms_plif" else 0.0), 1) <= goal_s
