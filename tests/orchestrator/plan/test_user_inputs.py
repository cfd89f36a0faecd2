"""Contexts and benchmarks of the user's own make another variant of a study."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.plan.study_plan import Plan, PlanRequest, make_plan, scale_named
from orchestrator.plan.user_inputs import read_inputs
from search_spaces.gss_grid import trials
from search_spaces.study import Study
from trainables.errors import UserError

STUDY = Study(name="s", trials=trials, measurements=("perplexity@1", "word_similarity@1", "top_k@1"))
PLAIN = Study(name="plain", trials=trials)


@pytest.fixture
def contexts(tmp_path: Path) -> Path:
    path = tmp_path / "mine.json"
    path.write_text('[{"last_token_index": 3}]')
    return path


@pytest.fixture
def benchmarks(tmp_path: Path) -> Path:
    folder = tmp_path / "sims"
    folder.mkdir()
    (folder / "EN-A.txt").write_text("cat dog 1\n")
    return folder


def plan_of(study: Study, **request: Any) -> Plan:
    return make_plan(study, scale_named("smoke"), "pydocs", PlanRequest(**request))


def test_they_replace_the_published_ones_and_are_part_of_the_variant(contexts: Path, benchmarks: Path) -> None:
    inputs = read_inputs(contexts, benchmarks)
    assert inputs.contexts is not None and inputs.benchmarks is not None
    plan = plan_of(STUDY, overrides={"training.epochs": 1}, inputs=inputs)
    assert plan.measurements == ("perplexity@1", inputs.benchmarks.measurement, inputs.contexts.measurement)
    assert json.loads(plan.key.overrides) == {
        "training.epochs": 1,
        "--contexts": f"mine.json {inputs.contexts.tag}",
        "--benchmarks": f"sims {inputs.benchmarks.tag}",
    }
    plain = plan_of(STUDY, overrides={"training.epochs": 1})
    assert plain.measurements == STUDY.measurements
    assert [trial.trial_id for trial in plain.trials] == [trial.trial_id for trial in plan.trials]


@pytest.mark.parametrize("option", ["--contexts", "--benchmarks"])
def test_a_study_that_does_not_ask_for_the_measurement_refuses_them(
    contexts: Path, benchmarks: Path, option: str
) -> None:
    inputs = read_inputs(contexts if option == "--contexts" else None, benchmarks if option == "--benchmarks" else None)
    with pytest.raises(UserError, match=f"^{option} is for studies that measure .*, and plain measures perplexity@1, "):
        plan_of(PLAIN, inputs=inputs)


def test_a_study_with_an_unknown_measurement_is_refused_before_anything_runs() -> None:
    with pytest.raises(UserError, match=r"among perplexity@1, .*; s asks for 'top_k': mend it"):
        plan_of(Study(name="s", trials=trials, measurements=("perplexity@1", "top_k")))


def test_the_published_benchmarks_lie_in_the_data_folder_whatever_the_corpus(tmp_path: Path) -> None:
    assert plan_of(STUDY, data_dir=tmp_path).benchmarks_dir == tmp_path
    assert plan_of(STUDY).benchmarks_dir == Path("data").resolve()
