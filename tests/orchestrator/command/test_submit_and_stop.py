"""`submit` and `stop`: what they refuse, before anything is sent, and what they write into the store."""

from __future__ import annotations

import shlex
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from orchestrator.command.app import main
from orchestrator.store.records import StudyKey
from orchestrator.store.store import Store
from tests.support.scripted_trials import planned
from tests.support.store_rows import RUN

NOWHERE = ("--address", "http://127.0.0.1:9")
KEY = StudyKey(study="gss_grid", scale="smoke", corpus="pydocs")


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
        (["gss_grid", "--storage", "s3://bucket/runs"], "a results store cannot lie in an object store"),
        (
            ["gss_grid", "--storage", "s3://bucket/runs", "--store", "postgresql://u@h/d", *NOWHERE],
            "No Ray job interface",
        ),
        (["gss_gird", "--storage", "/shared"], "gss_gird"),
        (["gss_grid", "--storage", "/shared", "--scale", "qiuck"], "qiuck"),
        (["gss_grid", "--storage", "/shared", "--store", "sqlite:///rel.db"], "give --store as an absolute path"),
        (["my_study.py", "--storage", "/shared"], "give the study as an absolute path"),
        (["gss_grid", "--storage", "/shared", "--address", "10.0.0.1:6379"], "http://HOST:8265"),
        (["gss_grid", "--storage", "/shared", *NOWHERE], "No Ray job interface"),
        (["gss_grid", "--storage", "/shared", "--epochs", "3"], "--epochs"),
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


def test_a_named_study_can_be_asked_to_stop_while_none_of_its_trials_runs(
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


@pytest.mark.parametrize("status", [401, 403, 500])
def test_a_dashboard_that_takes_no_job_from_here_is_told(status: int, capsys: pytest.CaptureFixture[str]) -> None:
    class Refuses(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b"no")

        do_POST = do_GET

    server = ThreadingHTTPServer(("127.0.0.1", 0), Refuses)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        address = f"http://127.0.0.1:{server.server_port}"
        assert main(["submit", "gss_grid", "--storage", "/shared", "--address", address]) == 2
    finally:
        server.shutdown()
        server.server_close()
    assert f"answers at --address {address}" in capsys.readouterr().err


def test_the_command_that_stops_what_was_submitted_is_one_that_works(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file's study has a name of its own, and `all` is none."""
    monkeypatch.setattr("orchestrator.cluster.submit", lambda *_: "job")
    file, key, trials = tmp_path / "my study.py", replace(KEY, study="bend"), planned(range(2))
    file.write_text(
        "from search_spaces.gss_grid import STUDY as GRID\nfrom search_spaces.study import Study\n"
        'STUDY = Study(name="bend", trials=GRID.trials, corner=GRID.corner)\n'
    )
    for study in ("all", str(file)):
        assert main(["submit", study, "--storage", str(tmp_path)]) == 0
        (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("Stop it with"))
        store.register(key, trials)
        run_id = store.begin_run(RUN)
        store.claim([trials[0].trial_id], owner="somewhere:1:2:3", lease_s=600)
        assert main(shlex.split(line.partition("sweep.py ")[2])) == 0
        assert store.requests(key, run_id).stop_study
