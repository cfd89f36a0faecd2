from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.plan import PlanRequest, make_plan
from orchestrator.store import StudyKey
from orchestrator.sweep import Typed
from orchestrator.sweep.commands import command_line, paper_command, run_command
from orchestrator.variants import Variant, parse_settings
from search_spaces.catalog import load_study
from search_spaces.scales import SCALES
from search_spaces.study import Study
from trainables.errors import PROGRAM

MINE = Study(name="mine", trials=lambda _: (), corpora=("ptb", "wikitext-2"), source="A paper")
KEY = StudyKey(study="mine", scale="quick", corpus="pydocs")
PLACES = {"--storage": ["my results"], "--store": ["postgresql://me@host/db"]}


def words(command: str | None) -> list[str]:
    assert command is not None and command.startswith(f"{PROGRAM} ")
    return shlex.split(command.removeprefix(PROGRAM))


def test_command_line_quotes_every_word() -> None:
    options = {"--corpus": ["a", "b c"], "--all-trials": [], "--set": ["x=1"]}
    typed = shlex.split("--corpus a --corpus 'b c' --all-trials --set x=1")
    printed = words(command_line("retry", "my study.py", options=options))
    assert printed == ["retry", "my study.py", *typed]


def test_paper_command_keeps_the_paths() -> None:
    typed = Typed(study="./my study.py", options={"--seeds": ["2"], **PLACES})
    expected = "'./my study.py' --scale paper --corpus ptb --corpus wikitext-2"
    expected += " --storage 'my results' --store postgresql://me@host/db"
    assert words(paper_command(typed, MINE, KEY)) == shlex.split(expected)
    assert paper_command(typed, MINE, replace(KEY, scale="paper")) is None
    assert paper_command(typed, replace(MINE, source=""), KEY) is None
    builtin = replace(MINE, corpora=())
    assert words(paper_command(Typed(study="mine"), builtin, KEY))[-1] == "ptb"


@pytest.mark.parametrize("folder", ["./a/text", "."])
def test_custom_corpus_keeps_its_path(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text").mkdir()
    monkeypatch.chdir(tmp_path / "text")
    typed = Typed(study="mine", options={"--corpus": [folder]})
    key, study = replace(KEY, corpus="text"), replace(MINE, corpora=())
    assert words(paper_command(typed, study, key))[-1] == folder
    assert words(run_command(typed, study, key))[-1] == folder


def test_command_plans_its_variant() -> None:
    study = load_study("gss_grid")
    settings = parse_settings(
        ["training.epochs=3", "training.learning_rate=5,10.5", "output_layer.c=-1e-05"]
    )
    variant = Variant(settings=settings, model="transformer", contexts="my words.json 1a2b3c4d")
    key = StudyKey(study="gss_grid", scale="smoke", corpus="pydocs", overrides=variant.text)
    typed = Typed(
        study="gss_grid", options={"--budget": ["4"], "--max-concurrent": ["2"], **PLACES}
    )
    printed = words(run_command(typed, study, key))
    assert printed[:5] == ["gss_grid", "--scale", "smoke", "--corpus", "pydocs"]
    sets = [printed[i + 1] for i, word in enumerate(printed) if word == "--set"]
    assert parse_settings(sets) == settings
    assert printed[printed.index("--model") + 1] == "transformer"
    assert printed[printed.index("--contexts") + 1] == "my words.json"
    assert printed[-6:-4] == ["--budget", "4"] and "--max-concurrent" not in printed
    typed = Typed(study="gss_grid", options={"--contexts": ["../my words.json"]})
    assert "../my words.json" in words(run_command(typed, study, key))


def test_command_keeps_the_seeds() -> None:
    study, typed = load_study("gss_grid"), Typed(study="gss_grid")
    plan = make_plan(study, SCALES["smoke"], "pydocs", PlanRequest())
    rows = [{"config": trial.config} for trial in plan.trials]
    assert "--seeds" not in run_command(typed, study, plan.key, rows)
    three = [{"config": {**row["config"], "seed": seed}} for row in rows for seed in (1, 2, 3)]
    assert "--seeds 3" in run_command(typed, study, plan.key, three)
    command = Typed(study="gss_grid", options={"--seeds": ["2"]})
    assert "--seeds 2" in run_command(command, study, plan.key, three)
