"""`submit` and `stop`: what they refuse, before anything is sent, and what they write into the store."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.cli import main
from orchestrator.store.opening import open_store
from orchestrator.store.records import RunRecord, StudyKey
from tests.orchestrator.scripted_trials import planned

KEY = StudyKey(study="gss_grid", scale="smoke", corpus="pydocs")
RUN = RunRecord(code_version="-", packages={}, host="-", device="cpu", corpus_sha256="0" * 64)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["gss_grid"], "give --storage as an absolute path"),
        (["gss_grid", "--storage", "/shared", "--store", "postgresql://u:secret@h/d"], "takes no password in --store"),
        (["gss_grid", "--storage", "/shared", "--store", "postgresql://u@h/d?password=secret"], "takes no password"),
        (
            ["gss_grid", "--storage", "/shared", "--log-to", "mlflow=http://u:secret@h:5000"],
            "no address with a password",
        ),
        (["my_study.py", "--storage", "/shared"], "give the study as an absolute path"),
        (["gss_grid", "--storage", "/shared", "--address", "10.0.0.1:6379"], "http://HOST:8265"),
        (["gss_grid", "--storage", "/shared", "--address", "http://127.0.0.1:9"], "No Ray job interface"),
    ],
)
def test_what_the_cluster_could_not_run_or_should_not_show_is_refused(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["submit", *arguments]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert "secret" not in error
    assert "Traceback" not in error


def test_options_that_run_does_not_have_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["submit", "gss_grid", "--storage", "/shared", "--epochs", "3"]) == 2
    assert "--epochs" in capsys.readouterr().err


def test_a_running_study_and_a_trial_can_be_asked_to_stop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trials = planned(range(2))
    with open_store(str(tmp_path / "results.db")) as store:
        store.register(KEY, trials)
        run_id = store.begin_run(RUN)
        place = ["--storage", str(tmp_path)]
        assert main(["stop", *place]) == 2
        assert "so there is nothing to stop; running: none" in capsys.readouterr().err
        store.claim([trials[0].trial_id], owner="somewhere:1:2:3", lease_s=600)
        assert main(["status", *place]) == 0
        assert f"{trials[0].trial_id[:12]}  seed=0  (run from somewhere)" in capsys.readouterr().out
        assert main(["stop", trials[0].trial_id[:12], *place]) == 0
        assert store.requests(KEY, run_id).stop_trials == {trials[0].trial_id}
        assert not store.requests(KEY, run_id).stop_study
        assert main(["stop", "gss_grid", "--scale", "paper", *place]) == 2
        assert main(["stop", *place]) == 0
        assert store.requests(KEY, run_id).stop_study


def test_a_named_study_can_be_asked_to_stop_while_none_of_its_trials_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its command may measure, or just begin."""
    with open_store(str(tmp_path / "results.db")) as store:
        store.register(KEY, planned(range(2)))
        run_id = store.begin_run(RUN)
        assert main(["stop", "gss_grid", "--storage", str(tmp_path)]) == 0
        assert "no trial of it runs now" in capsys.readouterr().out
        assert store.requests(KEY, run_id).stop_study
        assert main(["stop", "mos_k", "--storage", str(tmp_path)]) == 2
        assert "the study or trial 'mos_k'" in capsys.readouterr().err
