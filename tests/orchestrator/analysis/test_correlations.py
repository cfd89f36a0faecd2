"""Windows, published values and what is missing."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from orchestrator.analysis.correlations import ComparedCorrelation, correlation_numbers
from search_spaces.study import Correlation, PublishedCorrelation

REQUEST = Correlation(
    windows={"ptb": (56.6, 57.6)}, published={"ptb": PublishedCorrelation(all_cells=0.48, windowed=0.24, cells=72)}
)


def make_frame(perplexities: list[float], *, states: list[str] | None = None) -> pd.DataFrame:
    ranks = [float(100 + 7 * i % 11) for i in range(len(perplexities))]
    state = states or ["done"] * len(perplexities)
    return pd.DataFrame({"state": state, "press_rank": ranks, "test_perplexity": perplexities})


def correlate(frame: pd.DataFrame, *, corpus: str = "ptb", scale: str = "quick") -> tuple[ComparedCorrelation, ...]:
    return correlation_numbers(frame, REQUEST, corpus=corpus, scale=scale).lines


def test_the_published_window_holds_at_paper_scale_both_ends_inside() -> None:
    frame = make_frame([56.5, 56.6, 57.0, 57.2, 57.6, 57.61])
    everything, inside = correlate(frame, scale="paper")
    assert (everything.n, inside.n) == (6, 4)
    assert inside.window is not None and inside.window.origin == "published"
    assert inside.pearson.value == pytest.approx(np.corrcoef(frame.press_rank[1:5], frame.test_perplexity[1:5])[0, 1])


@pytest.mark.parametrize(("corpus", "scale"), [("ptb", "quick"), ("pydocs", "paper")])
def test_elsewhere_the_window_is_the_better_half_with_its_bounds(corpus: str, scale: str) -> None:
    frame = make_frame([210.0, 190.0, 200.0, 230.0, 220.0, 240.0])
    _, inside = correlate(frame, corpus=corpus, scale=scale)
    assert inside.window is not None
    assert (inside.window.low, inside.window.high, inside.window.origin) == (190.0, 215.0, "better half")
    assert inside.n == 3


def test_trials_without_a_result_are_left_out_and_counted() -> None:
    states = ["done", "done", "done", "done", "failed", "diverged", "diverged", "planned", "running"]
    everything, _ = correlate(make_frame([1.0] * 4 + [math.nan] * 5, states=states))
    assert everything.n == 4
    assert everything.missing == "1 of 9 trials failed, 2 of 9 trials diverged, 2 of 9 trials not finished"


def test_a_metric_that_nobody_measured_gives_words_not_an_error() -> None:
    frame = make_frame([1.0, 2.0, 3.0]).drop(columns="press_rank")
    (only,) = correlate(frame)
    assert only.pearson.value is None and "there is none" in only.pearson.missing
    assert only.missing == "3 of 3 trials without a value of both metrics"
