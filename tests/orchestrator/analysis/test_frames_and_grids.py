from __future__ import annotations

import json
import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from orchestrator.analysis import METRICS, count_values, flatten, grid_numbers, summarise
from search_spaces.analyses import GridMap
from tests.support.synthetic_results import KEY, STUDY, fail, make_results, trial_row
from trainables.trial_folder import check_metrics


def test_well_known_metrics_are_numbers() -> None:
    for name in {*METRICS} - {"rank_method"}:
        with pytest.raises(ValueError, match=f"the metric {name} must be a number"):
            check_metrics({name: "low"})


def test_columns_are_in_reading_order() -> None:
    rows = [
        trial_row(
            "a", config={"seed": 1, "layer": {"name": "gss", "k": 2.0}}, zeta=1, press_rank=5
        ),
        trial_row("b", config={"seed": 1, "layer": {"name": "softmax"}}, test_perplexity=9.5),
    ]
    results = flatten(rows)
    assert flatten(rows[::-1]).metric_columns == results.metric_columns, "whoever finished first"
    assert results.columns == (
        *("trial_id", "setting", "name", "state", "attempt", "cause"),
        *("seed", "layer.name", "layer.k"),
        *("test_perplexity", "press_rank", "zeta"),
    )
    assert results.varying == ("layer.name", "layer.k")
    assert results.records[1]["layer.k"] is None and results.records[1]["press_rank"] is None
    assert all(list(record) == list(results.columns) for record in results.records)


def test_frame_distinguishes_softcap_forms() -> None:
    layers: list[dict[str, object]] = [
        {"output_layer": {"name": "softcap", "form": "tanh", "cap": 15.0}},
        {"output_layer": {"name": "mos", "mixtures": 3}},
        {"output_layer": {"name": "custom", "layer": "Mine", "sha256": "0" * 64}},
        {"noise": 1.0},
    ]
    rows = [
        trial_row(f"{index}", config={"seed": 1, **config}) for index, config in enumerate(layers)
    ]
    *names, last_name = flatten(rows).frame()["output_layer"]
    assert names == ["softcap tanh", "mos", "custom Mine"] and math.isnan(last_name)
    assert list(flatten(rows[1:2]).frame()["output_layer"]) == ["mos"]


def test_grid_has_means_and_worst_state() -> None:
    results = [
        trial_row("a", config={"l": {"c": -1.0, "k": 2.0}}, m=10.0),
        trial_row("b", config={"l": {"c": -1.0, "k": 2.0}}, m=20.0),
        trial_row("c", "diverged", config={"l": {"c": 0.5, "k": 2.0}}),
        trial_row("d", config={"l": {"c": -1.0, "k": 1.0}}, m=7.0),
    ]
    request = GridMap(row="l.c", column="l.k", metrics=("m",))
    numbers = grid_numbers(flatten(results).frame(), request)
    assert numbers is not None
    cells = numbers.cells[["row", "column", "value", "state", "trials"]].to_numpy().tolist()
    assert cells == [
        [-1.0, 1.0, 7.0, "done", 1],
        [-1.0, 2.0, 15.0, "done", 2],
        [0.5, 1.0, None, "none", 0],
        [0.5, 2.0, None, "diverged", 1],
    ]
    assert grid_numbers(flatten(results).frame(), GridMap(row="l.c", column="l.x")) is None


def test_summary_of_whole_grid() -> None:
    rows, _ = make_results()
    rows[3] = fail(rows[3], state="failed", cause="ValueError: no")
    results = flatten(rows)
    assert json.loads(json.dumps(results.records, allow_nan=False)) == list(results.records)
    summary = summarise(STUDY, KEY, results, results.frame())
    assert (summary.trials, summary.done, summary.counts) == (72, 71, {"done": 71, "failed": 1})
    assert [trial["cause"] for trial in summary.trouble] == ["ValueError: no"]
    press_rank, test_perplexity = summary.extremes
    assert (press_rank["metric"], test_perplexity["metric"]) == ("press_rank", "test_perplexity")
    ranks = {row["name"]: row["metrics"]["press_rank"] for row in rows if row["metrics"]}
    assert ranks[press_rank["greatest_name"]] == press_rank["greatest"] == max(ranks.values())
    assert summary.trials_per_setting == 1 and summary.seeds == (1111,)


def test_settings_with_one_name_differ() -> None:
    rows = [
        trial_row(f"softmax seed={seed}", config={"seed": seed, "training": {"epochs": epochs}})
        for seed, epochs in product((1, 2), (20, 30))
    ]
    groups = ["softmax, training.epochs=20", "softmax, training.epochs=30"]
    assert list(flatten(rows).frame()["group"]) == groups * 2


def test_environments_sort_by_count() -> None:
    environments = [{"code": "c"}, {"code": "a", "torch": "2.13.0"}, {"code": "c"}]
    counted = {name: list(counts.items()) for name, counts in count_values(environments).items()}
    assert counted == {"code": [("c", 2), ("a", 1)], "torch": [("", 2), ("2.13.0", 1)]}
    assert count_values([]) == count_values([{}, {}]) == {}


@pytest.mark.parametrize(
    ("model", "rank"),
    [({"embedding_width": 12}, 12), ({"width": 12}, 12), ({"width": 12, "head_rank": 5}, 5)],
)
def test_null_is_the_mean_projection(model: dict[str, int], rank: int) -> None:
    """Gradients in uniform random directions lose this norm outside random weights' columns."""
    words, draw = 60, np.random.default_rng(3).standard_normal
    basis = np.linalg.qr(draw((words, rank)))[0]
    assert np.mean(np.sum(basis**2, axis=1)) == pytest.approx(rank / words)  # the mean leverage
    gradients = draw((40_000, words))
    lost = gradients - gradients @ basis @ basis.T
    shares = np.linalg.norm(lost, axis=1) / np.linalg.norm(gradients, axis=1)
    for count in ("rank_columns", "kl_rank_columns"):
        measured = {"gradient_norm_lost": 0.9, count: words}
        row = trial_row("softmax", config={"model": model}, **measured)
        [record] = flatten([row]).records
        assert record["gradient_norm_lost_null"] == pytest.approx(
            math.sqrt(np.mean(shares**2)), rel=1e-3
        )
    for metrics in ({"rank_columns": words}, {"gradient_norm_lost": 0.9}):
        row = trial_row("softmax", config={"model": model}, **metrics)
        assert "gradient_norm_lost_null" not in flatten([row]).metric_columns


def test_units_tell_networks_apart() -> None:
    layers = [{"name": "monotone_nn", "units": units} for units in (8, 1000)]
    layers.append({"name": "softcap", "form": "tanh"})
    configs: list[dict[str, Any]] = [*({"output_layer": layer} for layer in layers), {"width": 3}]
    rows = [trial_row(f"trial {i}", config=config) for i, config in enumerate(configs)]
    *names, absent = flatten(rows).frame()["output_layer"]
    assert names == ["monotone_nn 8", "monotone_nn 1000", "softcap tanh"]
    assert not isinstance(absent, str)


def test_derived_metrics_need_all_inputs() -> None:
    trials = (
        ("spam-1000", {"train_perplexity": 4.0, "test_perplexity": 6.0}),
        ("ptb", {"test_perplexity": 6.0}),
        ("spam-7", {"train_perplexity": 4.0}),
    )
    rows = [trial_row(name, config={"corpus": {"name": name}}, **of) for name, of in trials]
    results = flatten(rows)
    derived = ("generalisation_gap", "excess_cross_entropy")
    # A text repeats one of V symbols seven times and then has an end token.
    excess = pytest.approx(math.log(6) - math.log(1000) / 8)
    assert [[record[name] for name in derived] for record in results.records] == [
        [2.0, excess],
        [None, None],
        [None, None],
    ]
    assert not {*derived} & {*flatten(rows[1:]).columns}
    assert {"group", "kind"} < {*flatten([]).frame().columns}
