from __future__ import annotations

from pathlib import Path

import pytest
from flask import Flask

from orchestrator.store import Store, StudyKey
from orchestrator.view import downloads
from orchestrator.view.source import Source
from tests.support.command import sweep
from tests.support.store_rows import RUN, SPECTRUM, ids, outcome, plan

KEY = StudyKey(
    study="gss_grid",
    scale="quick",
    corpus="pydocs",
    overrides='{"settings":{"training.epochs":[3]}}',
)


@pytest.fixture
def pages(store: Store, tmp_path: Path) -> Flask:
    trials = plan(3)
    store.register(KEY, trials)
    store.claim(ids(trials[:2]), owner="a", lease_s=60)
    run_id = store.begin_run(RUN)
    for trial_id in ids(trials[:2]):
        store.record(outcome(trial_id), run_id=run_id, spectrum=SPECTRUM)
    server = Flask(__name__)
    downloads.register(server, Source(str(tmp_path / "results.db"), str(tmp_path)))
    return server


@pytest.mark.parametrize("form", ["csv", "json"])
def test_download_equals_results_command(pages: Flask, tmp_path: Path, form: str) -> None:
    printed = sweep("results", "gss_grid", "--storage", tmp_path, "--format", form)
    assert printed.returncode == 0, printed.stderr
    file = pages.test_client().get("/download/study/" + KEY.variant, follow_redirects=True)
    assert file.status_code == 404, "the address has no file format"
    file = pages.test_client().get(f"/download/study/{KEY.variant}.{form}")
    assert file.text == printed.stdout
    # No file name: HTTP headers are limited to Latin-1.
    assert file.headers["Content-Disposition"] == "attachment"


def test_download_names_its_study(pages: Flask) -> None:
    start = ids(plan(3))[1]
    head, line = (
        pages.test_client()
        .get(f"/download/study/{KEY.variant}.csv?trial={start}")
        .text.splitlines()
    )
    assert head.startswith("study,scale,corpus,overrides,")
    assert line.startswith("gss_grid,quick,pydocs,")


def test_unknown_study_gets_one_sentence(pages: Flask) -> None:
    answer = pages.test_client().get("/download/study/none.csv")
    assert answer.status_code == 404 and "the store has no study 'none'" in answer.text
