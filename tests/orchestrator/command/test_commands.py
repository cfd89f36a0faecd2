from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from typer.main import get_command

from orchestrator.command.app import app
from orchestrator.store import Store, StudyKey
from search_spaces.catalog import ALL, NAMES
from tests.orchestrator.command.conftest import Typed
from tests.support.command import sweep
from tests.support.scripted_trials import planned
from tests.support.store_rows import RUN

KEY = StudyKey(study="gss_grid", scale="smoke", corpus="pydocs")


def test_study_names_are_not_commands() -> None:
    group: Any = get_command(app)
    assert not {*NAMES, ALL} & {*group.commands}


def test_study_exit_text_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "import sys\nfrom search_spaces.study import Study\n"
        "STUDY = Study(name='mine', trials=lambda corpus: sys.exit('no text here'))"
    )
    answer = sweep(file, "--dry-run")
    assert (answer.returncode, answer.stderr) == (1, "error: no text here\n")


def test_retry_offers_only_its_options() -> None:
    assert "--dry-run" in sweep("run", "--help").stdout
    offered = sweep("retry", "--help").stdout
    assert all(word in offered for word in ("--set", "jsonl"))
    assert not any(word in offered for word in ("--dry-run", "csv"))


def test_studies_and_trials_can_stop(store: Store, typed: Typed) -> None:
    trials = planned(range(2))
    store.register(KEY, trials)
    run_id = store.begin_run(RUN)
    assert "no study is running" in typed("stop", "all").stderr
    store.claim([trials[0].trial_id], owner="somewhere:1:2:3", lease_s=600)
    output = typed("status").stdout
    assert f"{trials[0].trial_id[:12]}  seed=0  (run from somewhere)" in output
    assert typed("stop", trials[0].trial_id[:5]).returncode == 0
    assert store.requests(KEY, run_id).stop_trials == {trials[0].trial_id}
    assert not store.requests(KEY, run_id).stop_study
    assert typed("stop", "gss_grid", "--scale", "paper").returncode == 2
    bare = typed("stop")
    assert (bare.returncode, "gss_grid" in bare.stderr) == (2, True) and "all" in bare.stderr
    assert not store.requests(KEY, run_id).stop_study
    assert typed("stop", "all").returncode == 0
    assert store.requests(KEY, run_id).stop_study


def test_named_variant_stops_while_idle(store: Store, typed: Typed) -> None:
    settings = '{"settings":{"training.epochs":[3],"training.learning_rate":[5,10]}}'
    swept = replace(KEY, overrides=settings)
    for key in (KEY, swept):
        store.register(key, planned(range(2)))
    run_id = store.begin_run(RUN)
    chosen = ("--set", "training.learning_rate=10,5", "--set", "training.epochs=3")
    assert "is not running" in typed("stop", "gss_grid", *chosen[:2]).stderr
    assert "no running trial" in typed("stop", "gss_grid", *chosen).stdout
    assert [store.requests(key, run_id).stop_study for key in (KEY, swept)] == [False, True]
