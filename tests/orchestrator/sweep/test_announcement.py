"""What a run says first, and the commands that it tells its reader to type."""

from __future__ import annotations

import shlex
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from orchestrator.cluster import RunOptions
from orchestrator.plan import PlanRequest, make_plan, scale_named
from orchestrator.storage import FolderStorage
from orchestrator.store.records import StudyKey
from orchestrator.sweep.announcement import (
    command_line,
    opening,
    paper_command,
    retry_command,
    run_command,
    view_command,
)
from orchestrator.variants import overrides_json, parse_overrides
from search_spaces.catalog import load_study
from search_spaces.study import Study


@pytest.mark.parametrize(
    ("all_trials", "words"), [(False, "a part of the study"), (True, "every trial of the study")]
)
def test_the_first_lines_say_whether_the_scale_leaves_trials_out(
    tmp_path: Path, all_trials: bool, words: str
) -> None:
    plan = make_plan(
        load_study("gss_grid"), scale_named("quick"), "pydocs", PlanRequest(all_trials=all_trials)
    )
    lines = opening(
        plan, plan.total, {}, {}, (4.0, "estimated"), RunOptions(storage=FolderStorage(tmp_path))
    )
    assert f"{words} with tiny models" in lines


def test_retry_repeats_typed_words() -> None:
    typed = (
        "my study.py",
        "--scale",
        "quick",
        "--store",
        "postgresql+psycopg://me@host/db",
        "--set",
        "seed=1",
    )
    command = command_line("retry", *typed)
    assert shlex.split(command)[:4] == ["python", "sweep.py", "retry", "my study.py"]
    assert shlex.split(command)[-2:] == ["--set", "seed=1"]
    harmless = (
        "gss_grid",
        "--store",
        "postgresql+psycopg://me@host:5432/db",
        "--address",
        "10.0.0.1:6379",
    )
    assert shlex.split(command_line(*harmless))[2:] == list(harmless)


def test_the_papers_command_names_the_study_and_the_corpus_as_they_were_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = Study(name="mine", trials=lambda _: (), corpora=("ptb", "wikitext-2"))
    key = StudyKey(study="mine", scale="quick", corpus="pydocs", overrides="{}")
    typed = (
        "./my study.py",
        "--storage",
        "here",
        "--scale",
        "quick",
        "--store=postgresql://me@host/db",
    )
    command = paper_command("./my study.py", study, key, typed)
    assert command == (
        "python sweep.py './my study.py' --scale paper --corpus ptb --corpus wikitext-2 --storage "
        "here "
        "--store=postgresql://me@host/db"
    )
    own = replace(study, corpora=())
    assert paper_command("mine", own, key, ()) == "python sweep.py mine --scale paper --corpus ptb"
    text = replace(key, corpus="text")
    assert (
        paper_command("mine", own, text, ()) == "python sweep.py mine --scale paper --corpus text"
    )
    folder = ("mine", "--corpus", "./a/text", "--storage=there")
    printed = paper_command("mine", own, text, folder)
    assert printed == "python sweep.py mine --scale paper --corpus ./a/text --storage=there"
    (tmp_path / "text").mkdir()
    monkeypatch.chdir(tmp_path / "text")
    assert str(paper_command("mine", own, text, ("mine", "--corpus", "./"))).endswith("--corpus ./")
    assert paper_command("mine", own, text, ("mine", "--corpus=text/")) == (
        "python sweep.py mine --scale paper --corpus text/"
    )
    assert paper_command("mine", own, replace(key, scale="paper"), ()) is None


def test_the_command_of_a_variant_plans_that_variant(tmp_path: Path) -> None:
    settings = (
        "training.epochs=3",
        "training.learning_rate=5,10.5",
        "training.optimizer=adam",
        "output_layer.c=-1e-05",
    )
    request = PlanRequest(overrides=parse_overrides(settings))
    key = StudyKey(
        study="gss_grid",
        scale="smoke",
        corpus="pydocs",
        overrides=overrides_json(request.overrides),
    )
    typed = ("gss_grid", "--seeds", "2", "--format", "csv", "--storage", str(tmp_path))
    words = shlex.split(run_command("gss_grid", load_study("gss_grid"), key, typed))
    assert words[:7] == ["python", "sweep.py", "gss_grid", "--scale", "smoke", "--corpus", "pydocs"]
    assert (
        words[-2:] == ["--storage", str(tmp_path)]
        and words[7:9] == ["--seeds", "2"]
        and "csv" not in words
    )
    again = [value for name, value in pairwise(words) if name == "--set"]
    assert overrides_json(parse_overrides(again)) == key.overrides
    plan = make_plan(load_study("gss_grid"), scale_named("smoke"), "pydocs", PlanRequest())
    rows = [{"config": trial.config.model_dump(mode="json")} for trial in plan.trials]
    assert "--seeds" not in run_command("gss_grid", load_study("gss_grid"), key, (), rows)
    three = [{"config": {**row["config"], "seed": seed}} for row in rows for seed in (1, 2, 3)]
    assert " --seeds 3 " in run_command("gss_grid", load_study("gss_grid"), key, (), three)
    brought = replace(key, overrides='{"--contexts":"my words.json 1a2b3c4d"}')
    assert run_command("gss_grid", load_study("gss_grid"), brought, ()).endswith(
        "--contexts 'my words.json'"
    )


def test_a_list_that_trials_have_is_no_sweep_of_its_items() -> None:
    key = StudyKey(
        study="layer_gates",
        scale="smoke",
        corpus="none",
        overrides='{"learning_rates":[0.01,0.02]}',
    )
    study = load_study("layer_gates")
    one = [{"config": {"seed": 1, "learning_rates": [0.01, 0.02]}}]
    assert "learning_rates=[0.01, 0.02]" in shlex.split(
        run_command("layer_gates", study, key, (), one)
    )
    several = [{"config": {"seed": 1, "learning_rates": rate}} for rate in (0.01, 0.02)]
    assert "learning_rates=0.01,0.02" in shlex.split(
        run_command("layer_gates", study, key, (), several)
    )


@pytest.mark.parametrize(
    "overrides", ["", "no JSON", "[" * 10_000, "[1]", "null", '{"--contexts": 3, "search": [1]}']
)
def test_a_command_for_what_no_program_has_written_is_no_error(overrides: str) -> None:
    key = StudyKey(study="gss_grid", scale="smoke", corpus="../x", overrides=overrides)
    assert retry_command(key).startswith(
        "python sweep.py retry gss_grid --scale smoke --corpus ../x"
    )


def test_view_command_names_typed_places() -> None:
    assert view_command(("gss_grid", "--scale", "smoke")) == "python sweep.py view"
    typed = (
        "gss_grid",
        "--storage",
        "my results",
        "--set",
        "a=1",
        "--store=postgresql://me@host/db",
    )
    assert (
        view_command(typed)
        == "python sweep.py view --storage 'my results' --store=postgresql://me@host/db"
    )
