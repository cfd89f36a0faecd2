"""What commands do before anything is run or sent, and what they write into the store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from orchestrator.command.app import app, main
from orchestrator.store import Store, StudyKey
from search_spaces.catalog import ALL, NAMES
from tests.support.command import sweep
from tests.support.scripted_trials import planned
from tests.support.store_rows import RUN

KEY = StudyKey(study="gss_grid", scale="smoke", corpus="pydocs")


def test_no_study_is_named_like_a_command() -> None:
    group: Any = get_command(app)
    assert not {*NAMES, ALL} & {*group.commands}


def test_a_dry_run_asks_no_object_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    command = [
        "gss_grid",
        "--scale",
        "smoke",
        "--data-dir",
        "s3://bucket/data",
        "--dry-run",
        "--format",
        "csv",
    ]
    shown = sweep(*command, "--corpus", "ptb", "--corpus", "pydocs")
    assert (shown.returncode, shown.stdout.count("\n")) == (0, 1 + 2 * 4)
    assert shown.stderr.startswith("A dry run copies nothing from s3://bucket/data")
    assert (
        "corpus check mine --data-dir s3://bucket/data"
        in sweep(*command, "--corpus", "mine").stderr
    )


@pytest.mark.parametrize(("command", "listed"), [("run", True), ("retry", False)])
def test_retry_lists_no_plan(command: str, listed: bool) -> None:
    shown = sweep(command, "--help").stdout
    assert [option in shown for option in ("--dry-run", "--format", "--set")] == [
        listed,
        listed,
        True,
    ]


def test_the_text_of_a_studys_exit_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "import sys\nfrom search_spaces.study import Study\n"
        "STUDY = Study(name='mine', trials=lambda corpus: sys.exit('no text here'))"
    )
    answer = sweep(file, "--dry-run")
    assert (answer.returncode, answer.stderr) == (1, "error: no text here\n")


def test_a_running_study_and_a_trial_can_be_asked_to_stop(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trials = planned(range(2))
    store.register(KEY, trials)
    run_id = store.begin_run(RUN)
    place = ["--storage", str(tmp_path)]
    assert main(["stop", *place]) == 2
    assert "so there is nothing to stop; running: none" in capsys.readouterr().err
    store.claim([trials[0].trial_id], owner="somewhere:1:2:3", lease_s=600)
    assert main(["status", *place]) == 0
    assert f"{trials[0].trial_id[:12]}  seed=0  (run from somewhere)" in capsys.readouterr().out
    assert main(["stop", trials[0].trial_id[:5], *place]) == 0
    assert store.requests(KEY, run_id).stop_trials == {trials[0].trial_id}
    assert not store.requests(KEY, run_id).stop_study
    assert main(["stop", "gss_grid", "--scale", "paper", *place]) == 2
    assert main(["stop", *place]) == 0
    assert store.requests(KEY, run_id).stop_study


def test_a_named_study_stops_without_running_trials(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its command may measure, or just begin."""
    store.register(KEY, planned(range(2)))
    run_id = store.begin_run(RUN)
    assert main(["stop", "gss_grid", "--storage", str(tmp_path)]) == 0
    assert "no trial of it runs now" in capsys.readouterr().out
    assert store.requests(KEY, run_id).stop_study
    assert main(["stop", "mos_k", "--storage", str(tmp_path)]) == 2
    assert "the study or trial 'mos_k'" in capsys.readouterr().err


def test_the_variant_with_these_settings_is_stopped(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    swept = replace(
        KEY, overrides='{"settings":{"training.epochs":[3],"training.learning_rate":[5,10]}}'
    )
    for key in (KEY, swept):
        store.register(key, planned(range(2)))
    run_id, place = store.begin_run(RUN), ("--storage", str(tmp_path))
    typed = ("--set", "training.learning_rate=10,5", "--set", "training.epochs=3")
    assert main(["stop", "gss_grid", *typed[:2], *place]) == 2
    assert "does not run" in capsys.readouterr().err
    assert main(["stop", "gss_grid", *typed, *place]) == 0
    assert [store.requests(key, run_id).stop_study for key in (KEY, swept)] == [False, True]


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="this machine has a GPU")
def test_a_missing_gpu_is_refused_before_ray_starts(tmp_path: Path) -> None:
    answer = sweep("gss_grid", "--scale", "smoke", "--gpus-per-trial", "1", "--storage", tmp_path)
    assert answer.returncode == 2 and "Ray" not in answer.stdout
    assert "--gpus-per-trial 0" in answer.stderr
