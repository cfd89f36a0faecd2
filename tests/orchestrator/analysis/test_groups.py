from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from orchestrator.analysis import (
    CurveNumbers,
    contrast_numbers,
    count_numbers,
    curve_numbers,
    flatten,
    rows,
    tuned_numbers,
)
from orchestrator.analysis.predictions import prediction_numbers
from orchestrator.analysis.similarity import comparisons, rho_matrix, similarity_numbers, wins
from orchestrator.report.sections.lines import curve_section
from orchestrator.store import Position
from search_spaces.analyses import (
    Comparison,
    Counts,
    Curves,
    Predictions,
    Similarity,
)
from search_spaces.published import PublishedNumber
from tests.support.synthetic_results import trial_row

RHO: dict[str, Any] = {"similarity X": 0.5, "similarity Y": 0.1}
PAIRS: dict[str, Any] = {"similarity pairs X": 10, "similarity pairs Y": 4}
OWN = "1a2b3c4d"


def row(name: str, state: Any = "done", seed: Any = 1, **metrics: Any) -> dict[str, Any]:
    return trial_row(
        name, state, config={"seed": seed, "output_layer": {"mixtures": len(name)}}, **metrics
    )


ROWS = [
    row("a seed=1", seed=1, test_perplexity=10.0, train_perplexity=4.0),
    row("a seed=2", seed=2, test_perplexity=12.0, train_perplexity=5.0),
    row("a seed=3", "failed", seed=3),
    row("b seed=1", seed=1, test_perplexity=9.0),
    row("b seed=2", seed=2, test_perplexity=8.0),
    row("b seed=9", seed=9, test_perplexity=100.0),
    row("c seed=1", "planned", seed=1),
]
FRAME = flatten(ROWS).frame()


def test_named_seeds_form_one_family() -> None:
    request = Comparison(metric="test_perplexity", baselines={"b": "a", "c": "a"}, seeds=(1, 2))
    numbers = contrast_numbers(FRAME, request, corpus="ptb")
    b, c = rows(numbers.comparisons)
    # Differences -1 and -4: t = -2.5 / 1.5; with one degree of freedom, p = 1 - 2 arctan(|t|) / pi.
    p_value = 1 - 2 * math.atan(2.5 / 1.5) / math.pi
    assert (b.difference, b.holm_p) == pytest.approx((-2.5, p_value)), (
        "the family of tests excludes c"
    )
    assert (c.difference_p, c.holm_p) == (None, None) and "c" in c.missing
    assert [trial.value for trial in rows(numbers.trials)] == [-1, -4]


def test_counts_include_zero() -> None:
    counts = count_numbers(FRAME, Counts(metric="test_perplexity", values=(8, 11))).counts
    assert list(counts.columns) == ["group", 8, 9, 10, 11, 12, 100]
    assert counts.to_numpy().tolist() == [
        ["a", 0, 0, 1, 0, 1, 0],
        ["b", 1, 1, 0, 0, 0, 1],
        ["c", 0, 0, 0, 0, 0, 0],
    ]


def curves_of(trials: list[dict[str, Any]], metric: str, **request: Any) -> CurveNumbers:
    curves = Curves(metrics=(metric,), caption="Gap", **request)
    return curve_numbers(flatten(trials).frame(), curves, corpus="ptb")


def test_printed_point_is_at_our_group() -> None:
    trials = [row("K=1", test_perplexity=9.0), row("K=22", test_perplexity=8.0)]
    printed = {"test_perplexity": PublishedNumber(value=5.0)}
    published = {"ptb": dict.fromkeys(("K=1", "K=333", "K=4"), printed)}
    numbers = curves_of(
        [*trials, row("K=333", "failed")],
        "test_perplexity",
        x="output_layer.mixtures",
        published=published,
    )
    assert numbers.points.to_numpy().tolist() == [[3.0, 9.0], [4.0, 8.0]]
    assert numbers.printed["x"].to_dict() == {"K=1": 3.0}


def test_curve_uses_means_over_seeds() -> None:
    numbers = curves_of(ROWS, "test_perplexity", x="train_perplexity")
    assert numbers.means.to_dict("index") == {"a": {"x": 4.5, "test_perplexity": 11.0}}
    [drawing] = curve_section(numbers).drawings
    [axes] = drawing.draw().axes
    single, means = (np.asarray(line.get_xydata()) for line in axes.lines)
    assert len(single) == 2 and means.tolist() == [[4.5, 11.0]]


def test_printed_gap_uses_printed_perplexities() -> None:
    values = {"press_rank": 7.0, "train_perplexity": 3.0, "test_perplexity": 5.0}
    printed = {name: PublishedNumber(value=value) for name, value in values.items()}
    trials, published = [row("a", press_rank=1)], {"ptb": {"a": printed}}
    numbers = curves_of(trials, "generalisation_gap", x="press_rank", published=published)
    assert numbers.printed.to_dict("records") == [{"x": 7.0, "generalisation_gap": 2.0}]


def after(word: str, rank: int) -> str:
    top = [["of", 0.5], [word, 0.1]]
    return json.dumps({"next": word, "probability": 0.1, "rank": rank, "top": top})


def test_predictions_use_done_trials() -> None:
    first, second = "top_k yang 1", "top_k yang 2"
    trials = [
        row("a seed=1", **{first: after("tons", 2), second: after("tons", 3)}),
        row("b seed=1", **{first: after("tons", 1)}),
        row("c seed=1", "planned"),
    ]
    numbers = prediction_numbers(flatten(trials).frame(), Predictions(), corpus="ptb")
    assert numbers[["context", "model", "hit"]].to_numpy().tolist() == [
        ["yang 1", "a", True],
        ["yang 1", "b", True],
        ["yang 2", "a", False],
        ["yang 2", "b", None],
    ]
    trials[1] = row("a seed=2", **{first: after("tons", 1)})
    assert prediction_numbers(flatten(trials[2:]).frame(), Predictions(), corpus="ptb").empty
    two_seeds = prediction_numbers(flatten(trials).frame(), Predictions(), corpus="ptb")
    assert list(two_seeds["model"].unique()) == ["a seed=1", "a seed=2"]


def test_unknown_words_and_contexts_are_separate() -> None:
    predictions = {f"top_k-{OWN} own 1": after("of", 1)}
    unknown = {"top_k yang 1": after("<unk>", 1), "top_k yang 2": after("of", 1)}
    frame = flatten([row("a", **unknown, **predictions)]).frame()
    hits = [
        dict(zip(numbers["context"], numbers["hit"], strict=True))
        for tag in ("", OWN)
        for numbers in [prediction_numbers(frame, Predictions(), corpus="ptb", tag=tag)]
    ]
    assert hits == [{"yang 1": None, "yang 2": True}, {"own 1": True}]


def test_custom_benchmarks_have_no_printed_values() -> None:
    similarity = {f"similarity-{OWN} X": -0.9, f"similarity-{OWN} pairs X": 5}
    frame = flatten([row("a", **PAIRS, **RHO, **similarity), row("b", "planned")]).frame()
    request = Similarity(published={"ptb": {"X": {"a": 0.4}}})
    plain, custom = (similarity_numbers(frame, request, corpus="x", tag=tag) for tag in ("", OWN))
    assert plain.values.to_numpy().tolist() == [["X", 10, "a", 0.5, 0.4], ["Y", 4, "a", 0.1, None]]
    assert custom.values.to_numpy().tolist() == [["X", 5, "a", -0.9, None]]
    assert comparisons(rho_matrix(plain.values, "rho")) == 0
    assert (plain.corpus, custom.corpus) == ("ptb", "")


def test_wins_count_the_greater_rho() -> None:
    rows = [row("a seed=1", **PAIRS, **RHO), row("b seed=1", **PAIRS, **{"similarity X": 0.4})]
    published = {"ptb": {"X": {"a": 0.1, "b": 0.2}, "Y": {"a": 0.3, "b": 0.3}}}
    request = Similarity(published=published)
    values = similarity_numbers(flatten(rows).frame(), request, corpus="ptb").values
    won = {source: wins(rho_matrix(values, source)) for source in ("rho", "published")}
    assert won["rho"].to_numpy().tolist() == [[0, 1], [0, 0]], "a missing value never wins"
    assert won["published"].to_numpy().tolist() == [[0, 0], [1, 0]], "a tie has no winner"


def tuned_row(side: str, stage: Any, state: Any = "done", **metrics: Any) -> dict[str, Any]:
    return {
        **row(f"{side} {stage}", state, **metrics),
        "position": Position(side=side, stage=stage),
    }


def test_best_trial_covers_both_stages() -> None:
    results = [
        tuned_row("a", "stage1", valid_perplexity=9.0),
        tuned_row("a", "stage2", valid_perplexity=7.0),
        tuned_row("a", "stage2", "pruned"),
        tuned_row("a", "final", valid_perplexity=6.0),
        tuned_row("b", "stage1", "planned"),
    ]
    a, b = tuned_numbers(flatten(results).frame()).to_numpy().tolist()
    assert a == ["a", 1, 2, 1, 7.0, "stage2"] and b == ["b", 0, 0, 0, None, None]
    assert tuned_numbers(FRAME).empty
