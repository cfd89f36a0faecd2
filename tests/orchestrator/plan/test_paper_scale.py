"""A scale is the paper's where it changes no trial, whatever its name; a plan says what its trials have."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from orchestrator.plan.study_plan import PlanRequest, make_plan, scale_named
from orchestrator.plan.study_trials import is_paper_scale, scale_summary
from orchestrator.store.records import StudyKey
from orchestrator.sweep.announcement import paper_command
from search_spaces.catalog import load_study
from tests.support.command import sweep
from trainables.config import WordPairsConfig
from trainables.errors import UserError


@pytest.mark.parametrize("name", ["dirichlet", "layer_jacobian", "layer_gates"])
def test_what_small_leaves_as_it_is_is_the_papers(name: str) -> None:
    study = load_study(name)
    ids = [
        [trial.trial_id for trial in make_plan(study, scale_named(scale), "none").trials]
        for scale in ("small", "paper")
    ]
    assert ids[0] == ids[1]
    assert is_paper_scale(study, "small") and not is_paper_scale(study, "quick") and not is_paper_scale(study, "smoke")
    key = StudyKey(study=name, scale="small", corpus="none", overrides="{}")
    assert paper_command(name, study, key, ()) is None
    assert paper_command(name, study, replace(key, scale="quick"), ()) == f"python sweep.py {name} --scale paper"


def test_published_is_the_same_at_every_scale_and_others_are_not() -> None:
    assert all(is_paper_scale(load_study("published"), scale) for scale in ("smoke", "quick", "small", "paper"))
    press = load_study("press_robustness")
    assert [is_paper_scale(press, scale) for scale in ("smoke", "quick", "small", "paper")] == [False] * 3 + [True]
    assert not is_paper_scale(load_study("gss_grid"), "small")


def test_words_and_models_are_spoken_of_where_there_are_any() -> None:
    assert "2,000 words" in scale_summary(load_study("gss_grid"), "quick")
    assert scale_summary(load_study("press_robustness"), "quick").startswith("the whole study with smaller arrays")
    assert scale_summary(load_study("press_robustness"), "smoke").startswith(
        "a few trials of the study, smaller arrays"
    )
    assert scale_summary(load_study("published"), "quick") == "exactly what the study computes at scale paper"


def test_a_corpus_for_a_study_that_reads_its_own_is_refused_with_their_names() -> None:
    with pytest.raises(UserError, match=r"published always reads ptb and wikitext-2: .*--data-dir"):
        make_plan(load_study("published"), scale_named("quick"), "ptb")
    with pytest.raises(UserError, match="press_robustness reads none"):
        make_plan(load_study("press_robustness"), scale_named("quick"), "ptb")


def test_a_rank_that_leaves_noise_no_room_is_one_sentence() -> None:
    with pytest.raises(UserError, match="--set makes a config that cannot be: rank must be less than size"):
        request = PlanRequest(overrides={"size": 20, "rank": 20})
        make_plan(load_study("press_robustness"), scale_named("quick"), "none", request)


def test_a_dry_run_leaves_out_what_a_count_of_words_has_not() -> None:
    answer = sweep("published", "--dry-run", "--format", "json")
    for trial in json.loads(answer.stdout):
        assert trial["config"] == WordPairsConfig(seed=0, text=trial["config"]["text"]).model_dump()
        assert trial["parameters"] is trial["estimated_gpu_hours"] is trial["estimated_gpu_memory_gb"] is None
        assert trial["estimated_core_hours"] > 0
    table = sweep("published", "--dry-run").stdout
    assert "None" not in table and "0.00M" not in table
