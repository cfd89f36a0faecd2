"""What stacks save, against the published seconds and the reckoned milliseconds typed in here."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.forecast import stack_costs
from orchestrator.forecast.costs import ALONE, FEW, SEARCHED, TRANSFORMERS
from orchestrator.plan import Plan, PlanRequest, TrialPlan, make_plan, scale_named
from search_spaces.catalog import load_study
from tests.support.command import sweep
from trainables.config import MonotoneNnConfig, TrialConfig


def paper_plan(study: str, corpus: str = "ptb", **request: object) -> Plan:
    return make_plan(load_study(study), scale_named("paper"), corpus, PlanRequest(**request))  # type: ignore[arg-type]


def with_network(trial: TrialPlan) -> TrialPlan:
    """The trial with a layer that no stack has."""
    assert isinstance(trial.config, TrialConfig)
    return replace(
        trial, config=trial.config.model_copy(update={"output_layer": MonotoneNnConfig()})
    )


def epoch_s(step_ms: float, v100_s: float) -> float:
    """Softmax on PTB takes the V100 55 s for an epoch of 664 steps."""
    return 664 * step_ms / 1000 * v100_s / 55


@pytest.mark.parametrize(("precision", "step_ms"), [("float32", 9.4), ("tf32", 3.5), ("bf16", 1.9)])
def test_a_grid_of_equal_shapes_is_stacked_whole(precision: str, step_ms: float) -> None:
    costs = stack_costs([paper_plan("gss_grid", settings={"training.precision": (precision,)})])
    trial_hours = 72 * 1000 / 3600
    assert (costs.stacked, costs.alone, costs.alone_hours) == (72, {}, (0, 0))
    assert costs.hours_with == pytest.approx((trial_hours * epoch_s(step_ms, 58),) * 2)
    assert costs.hours_without == pytest.approx(
        (trial_hours * epoch_s(9, 58), trial_hours * epoch_s(12, 58))
    )


def test_trials_that_train_alone_gain_nothing_and_are_told_apart_by_the_reason() -> None:
    few, grid = paper_plan("mos_k"), paper_plan("gss_grid")
    costs = stack_costs([few, replace(grid, trials=tuple(map(with_network, grid.trials)))])
    assert (costs.stacked, costs.alone) == (0, {FEW: 6, ALONE: 72})
    assert costs.hours_with == costs.hours_without == costs.alone_hours
    assert 0 < costs.alone_hours[0] < costs.alone_hours[1]


def test_of_transformers_no_gain_is_reckoned() -> None:
    costs = stack_costs([paper_plan("gss_grid", model="transformer")])
    assert (costs.stacked, costs.alone) == (0, {TRANSFORMERS: 72})
    assert costs.hours_with == costs.hours_without == costs.alone_hours


def test_of_a_tuned_study_the_search_alone_trains_one_by_one() -> None:
    searched, grid = paper_plan("fair_capacity"), paper_plan("fair_capacity", search="grid")
    assert stack_costs([searched]).alone[SEARCHED] == 3 * 60
    assert SEARCHED not in stack_costs([grid]).alone


def test_a_trial_of_two_studies_is_counted_once() -> None:
    plans = [paper_plan("gss_grid"), paper_plan("gss_grid")]
    assert stack_costs(plans) == stack_costs(plans[:1])


def test_a_dry_run_says_both_costs_only_where_a_trial_has_a_whole_gpu() -> None:
    whole = sweep("gss_grid", "--scale", "paper", "--corpus", "ptb", "--dry-run").stdout
    assert "1,160 GPU-hours" in whole and "126 to 168 hours without stacks, 132 with them" in whole
    assert "not measured" in whole
    for gpus in ("0.5", "0"):
        shown = sweep(
            "gss_grid", "--scale", "paper", "--corpus", "ptb", "--dry-run", "--gpus-per-trial", gpus
        ).stdout
        assert "stacks" not in shown
