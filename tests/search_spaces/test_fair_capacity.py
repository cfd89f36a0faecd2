"""The study `fair_capacity` is the published one."""

from __future__ import annotations

import json

import pytest

from orchestrator.forecast import estimate
from orchestrator.plan import Plan, PlanRequest, make_plan, scale_named
from orchestrator.plan.tuning.tuning_plan import TuningPlan
from orchestrator.store.records import Place
from search_spaces.catalog import load_study
from search_spaces.fair_capacity import TUNING
from search_spaces.tuning import cell_count, cells
from tests.support.command import sweep
from trainables.config import CorpusConfig
from trainables.parameters import in_millions

SIDES = ("mos_dagger", "softmax_dagger", "softmax_double_dagger")


def planned(scale: str = "paper", search: str | None = None, budget: int | None = None) -> Plan:
    return make_plan(
        load_study("fair_capacity"),
        scale_named(scale),
        "ptb",
        PlanRequest(search=search, budget=budget),
    )


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
    millions = {
        side: {in_millions(t.parameters) for t in trials if t.name.split()[0] == side}
        for side in SIDES
    }
    assert millions == dict(zip(SIDES, ({"17.53"}, {"16.35"}, {"17.56"}), strict=True))
    bases = [base(CorpusConfig(name="ptb", sha256="0" * 64)) for base in TUNING.sides.values()]
    assert {(base.training.batch_size, base.model.hidden_width, base.seed) for base in bases} == {
        (12, 960, 28)
    }
    assert {base.training for base in bases} == {bases[0].training}


@pytest.mark.parametrize("scale", ["smoke", "quick", "paper"])
def test_a_cell_is_found_again_in_a_config_of_any_scale(scale: str) -> None:
    plan = tuning_at(scale)
    for cell in list(cells(TUNING.stage2))[::97]:
        config = plan.searched("mos_dagger", 1, cell).config
        assert plan.searched_cell("mos_dagger", config) == cell
        assert plan.searched_cell("softmax_dagger", config) is None
        assert plan.searched_cell("mos_dagger", {**config, "seed": 5}) is None


def test_the_published_best_are_cells_and_names_tell_side_and_stage() -> None:
    plan = tuning_at("paper")
    names = [name for name, _, _ in plan.certain()]
    assert names[0] == "mos_dagger stage1 de=0.2 dh=0.225 noise=0.1"
    assert "mos_dagger stage1 de=0.4 dh=0.225 noise=0.1" in names, "the published best of MoS"
    best = plan.searched(SIDES[2], 7, (2, 0, 1, 0, 2, 3))
    assert (
        best.name
        == f"{SIDES[2]} stage2 #7 dem=0.125 de=0.28 dh=0.225 do=0.26 noise=0.15 wd=1.5e-06"
    )
    assert best.place == Place(side=SIDES[2], stage="stage2", number=7)
    final, *_ = plan.final(SIDES[2], best.config)
    assert (final.name, final.place) == (
        f"{SIDES[2]} final seed=1063",
        Place(side=SIDES[2], stage="final"),
    )


def test_dry_run_tells_the_stages_and_lists_what_is_certain() -> None:
    plan = planned()
    hours = (
        sum(estimate(trial.config, plan.corpus).gpu_hours for trial in plan.trials)
        * (8 + 60 + 10)
        / 8
    )
    table = sweep("fair_capacity", "--scale", "paper", "--dry-run")
    assert table.returncode == 0, table.stderr
    for said in (
        "stage 1: 24 trials, 8 a side; up to",
        "stage 2: 180 trials, 60 a side, chosen by TPE from 2,940 cells",
        "final: 30 trials, 10 seeds of each side's best",
        f"fair_capacity, scale paper, corpus ptb: 234 trials, estimated {hours:,.0f} GPU-hours",
    ):
        assert said in table.stdout, table.stdout
    listed = sweep(
        "fair_capacity", "--scale", "paper", "--dry-run", "--format", "json", "--budget", "4"
    )
    assert len(json.loads(listed.stdout)) == 24
    assert listed.stderr.startswith("24 of 66 trials can be listed before results: ")


def test_another_way_to_search_is_a_variant_of_its_own_and_another_budget_is_not() -> None:
    assert planned(search="random").key != planned().key == planned(budget=7).key
