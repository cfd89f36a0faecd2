"""The study `fair_capacity` is the published one."""

from __future__ import annotations

import json

import pytest

from orchestrator.plan.study_plan import Plan, PlanRequest, make_plan, scale_named
from orchestrator.plan.tuning.tuning_plan import TuningPlan
from orchestrator.store.records import Place
from search_spaces.catalog import load_study
from search_spaces.fair_capacity import TUNING
from search_spaces.tuning import cell_count, cells
from tests.support.command import sweep
from trainables.config import CorpusConfig, TrialConfig
from trainables.parameters import in_millions

SIDES = ("mos_dagger", "softmax_dagger", "softmax_double_dagger")


def planned(scale: str = "paper", search: str | None = None, budget: int | None = None) -> Plan:
    return make_plan(load_study("fair_capacity"), scale_named(scale), "ptb", PlanRequest(search=search, budget=budget))


def tuning_at(scale: str) -> TuningPlan:
    tuning = planned(scale).tuning
    assert tuning is not None
    return tuning


def test_the_spaces_are_those_of_sm_tables_7_and_8() -> None:
    """Typed in here from the tables, not read from the code."""
    assert {d.key: d.values for d in TUNING.stage1} == {
        "model.dropout_embedding": (0.2, 0.4),
        "model.dropout_hidden": (0.225, 0.3),
        "model.embedding_noise": (0.10, 0.15),
    }
    assert {d.key: d.values for d in TUNING.stage2} == {
        "model.dropout_embedding_matrix": (0.075, 0.100, 0.125),
        "model.dropout_embedding": (0.28, 0.29, 0.30, 0.31, 0.32, 0.33, 0.34),
        "model.dropout_hidden": (0.20, 0.225, 0.25, 0.275, 0.30, 0.325, 0.35),
        "model.dropout_output": (0.26,),
        "model.embedding_noise": (0.10, 0.125, 0.15, 0.175, 0.20),
        "training.weight_decay": (1.2e-6, 1.3e-6, 1.4e-6, 1.5e-6),
    }
    assert (cell_count(TUNING.stage1), cell_count(TUNING.stage2)) == (8, 2940)


def test_the_sides_have_the_published_counts_and_differ_in_nothing_that_is_tuned() -> None:
    trials = planned().trials
    millions = {side: {in_millions(t.parameters) for t in trials if t.name.split()[0] == side} for side in SIDES}
    assert millions == dict(zip(SIDES, ({"17.53"}, {"16.35"}, {"17.56"}), strict=True))
    bases = [base(CorpusConfig(name="ptb", sha256="0" * 64)) for base in TUNING.sides.values()]
    assert {(base.training.batch_size, base.model.hidden_width, base.seed) for base in bases} == {(12, 960, 28)}
    assert {base.training for base in bases} == {bases[0].training}


@pytest.mark.parametrize(("scale", "budget"), [("smoke", 3), ("quick", 6), ("small", 30), ("paper", 60)])
def test_each_side_has_the_same_stages(scale: str, budget: int) -> None:
    plan = planned(scale)
    cells_of_side, seeds = (2, 2) if scale == "smoke" else (8, 10)
    assert plan.total == 3 * (cells_of_side + budget + seeds)
    counts = [sum(trial.name.startswith(f"{side} stage1 ") for trial in plan.trials) for side in SIDES]
    assert counts == [cells_of_side] * 3


def test_the_published_best_of_stage_2_is_a_cell_of_it() -> None:
    config = TrialConfig.model_validate(tuning_at("paper").searched(SIDES[2], 1, (2, 0, 1, 0, 2, 3)).config)
    model = config.model
    assert (model.dropout_embedding_matrix, model.dropout_embedding, model.dropout_hidden) == (0.125, 0.28, 0.225)
    assert (model.dropout_output, model.embedding_noise, config.training.weight_decay) == (0.26, 0.15, 1.5e-6)


@pytest.mark.parametrize("scale", ["smoke", "quick", "paper"])
def test_a_cell_is_found_again_in_a_config_of_any_scale(scale: str) -> None:
    plan = tuning_at(scale)
    for cell in list(cells(TUNING.stage2))[::97]:
        config = plan.searched("mos_dagger", 1, cell).config
        assert plan.searched_cell("mos_dagger", config) == cell
        assert plan.searched_cell("softmax_dagger", config) is None
        assert plan.searched_cell("mos_dagger", {**config, "seed": 5}) is None


def test_names_tell_side_and_stage() -> None:
    plan = tuning_at("paper")
    names = [name for name, _, _ in plan.certain()]
    assert names[0] == "mos_dagger stage1 de=0.2 dh=0.225 noise=0.1"
    assert "mos_dagger stage1 de=0.4 dh=0.225 noise=0.1" in names, "the published best of MoS"
    searched = plan.searched("mos_dagger", 7, (1, 0, 0, 0, 0, 0))
    assert searched.name == "mos_dagger stage2 #7 dem=0.1 de=0.28 dh=0.2 do=0.26 noise=0.1 wd=1.2e-06"
    assert searched.place == Place(side="mos_dagger", stage="stage2", number=7)
    final, *_ = plan.final("mos_dagger", searched.config)
    assert (final.name, final.place) == ("mos_dagger final seed=1063", Place(side="mos_dagger", stage="final"))


def test_dry_run_tells_the_stages_and_lists_what_is_certain() -> None:
    hours = sum(trial.estimate.gpu_hours for trial in planned().trials) * (8 + 60 + 10) / 8
    table = sweep("fair_capacity", "--scale", "paper", "--dry-run")
    assert table.returncode == 0, table.stderr
    for said in (
        "stage 1: 24 trials, 8 a side; up to",
        "stage 2: 180 trials, 60 a side, chosen by TPE from 2,940 cells",
        "final: 30 trials, 10 seeds of each side's best",
        f"fair_capacity, scale paper, corpus ptb: 234 trials, estimated {hours:,.0f} GPU-hours",
    ):
        assert said in table.stdout, table.stdout
    listed = sweep("fair_capacity", "--scale", "paper", "--dry-run", "--format", "json", "--budget", "4")
    assert len(json.loads(listed.stdout)) == 24
    assert listed.stderr.startswith("24 of 66 trials can be listed before results: ")


def test_another_way_to_search_is_a_variant_of_its_own_and_another_budget_is_not() -> None:
    assert planned(search="random").key != planned().key == planned(budget=7).key
