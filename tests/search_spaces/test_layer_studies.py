"""The two studies of layers of experts, as plans."""

from __future__ import annotations

import pytest

from orchestrator.plan.study_plan import PlanRequest, make_plan, scale_named
from search_spaces.catalog import load_study
from search_spaces.study import Comparison, Counts, GroupTable, PairedComparison
from trainables.config import LayerJacobianConfig, LayerTaskConfig
from trainables.errors import UserError


def test_the_jacobian_study_has_nine_layers_and_ten_seeds_at_paper_and_quick_scale() -> None:
    study = load_study("layer_jacobian")
    paper, quick, smoke = (make_plan(study, scale_named(name), "none") for name in ("paper", "quick", "smoke"))
    assert len(paper.trials) == len(quick.trials) == 90 and len(smoke.trials) == 10
    for plan, inputs in ((paper, 1000), (quick, 200), (smoke, 5)):
        configs = [trial.config for trial in plan.trials]
        assert {config.inputs for config in configs if isinstance(config, LayerJacobianConfig)} == {inputs}
    assert {trial.name.partition(" seed")[0] for trial in paper.trials} == {
        "dense",
        *(f"{gates} gates K={experts}" for gates in ("softmax", "constant") for experts in (2, 4, 8, 16)),
    }


def test_inputs_can_be_those_of_the_released_program() -> None:
    study = load_study("layer_jacobian")
    plan = make_plan(study, scale_named("quick"), "none", PlanRequest(overrides={"input_distribution": "uniform"}))
    distributions = [getattr(trial.config, "input_distribution", None) for trial in plan.trials]
    assert set(distributions) == {"uniform"}
    with pytest.raises(UserError, match="input_distribution"):
        make_plan(study, scale_named("quick"), "none", PlanRequest(overrides={"input_distribution": "cauchy"}))


def test_the_benchmark_has_three_layers_three_tasks_and_ten_seeds() -> None:
    study = load_study("layer_gates")
    paper, smoke = (make_plan(study, scale_named(name), "none") for name in ("paper", "smoke"))
    assert (len(paper.trials), len(smoke.trials)) == (90, 6)
    assert {trial.parameters for trial in paper.trials} == {3172}
    assert all(isinstance(trial.config, LayerTaskConfig) and trial.config.steps == 5_000 for trial in paper.trials)
    assert len({trial.name.partition(" seed")[0] for trial in paper.trials}) == 9


def test_its_layers_are_held_against_each_other_pair_by_pair_of_a_seed() -> None:
    """At a seed they learn the same function from the same examples: an unpaired test would be the wrong one."""
    study = load_study("layer_gates")
    families = [request for request in study.analyses if isinstance(request, PairedComparison)]
    assert [len(family.baselines) for family in families] == [6, 3]
    assert not any(isinstance(request, Comparison) for request in study.analyses)
    [counts] = [request for request in study.analyses if isinstance(request, Counts)]
    plan = make_plan(study, scale_named("quick"), "none")
    rates = {trial.config.learning_rates for trial in plan.trials if isinstance(trial.config, LayerTaskConfig)}
    assert rates == {counts.values}
    tables = [request for request in study.analyses if isinstance(request, GroupTable)]
    assert not any(counts.metric in table.metrics for table in tables), "a mean of learning rates means nothing"
