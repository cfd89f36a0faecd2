from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command import ROOT, results_table, sweep, sweep_process, typed
from tests.support.faulty_server import write_corpus
from tests.support.object_store import ObjectStore, object_store
from tests.support.one_ray import end_ray, start_ray
from tests.support.processes import Process
from tests.support.smoke_trials import smoke_plan, train_here

STUDY = """from search_spaces.gss_grid import STUDY as GRID
from search_spaces.study import Study

STUDY = Study(name="later", trials=GRID.trials, corner=GRID.corner,
    measurements=(*GRID.measurements, "top_k@1"))
"""
SMOKE = ("--scale", "smoke", "--max-concurrent", "1")
pytestmark = pytest.mark.timeout(600)
AWAY_S = 10
"""Seconds without the object store, longer than a trial and longer than a request's retries."""
WAIT_S = 200
TEXT = (ROOT / "README.md").read_text(encoding="utf-8") * 3


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with object_store(tmp_path_factory.mktemp("s3")) as started:
        end_ray()  # a Ray started after this gives its workers these variables
        yield started


def wiped(store: ObjectStore) -> None:
    shutil.rmtree(store.environment["XDG_CACHE_HOME"], ignore_errors=True)


def test_kill_and_outage_change_nothing(store: ObjectStore, tmp_path: Path) -> None:
    ray = start_ray()
    undisturbed = tmp_path / "undisturbed"
    here = write_corpus(tmp_path / "data" / "readme", train=TEXT, valid=TEXT, test=TEXT)
    study = tmp_path / "later.py"
    study.write_text(STUDY)
    data = ("--corpus", "readme", "--data-dir", here.parent)
    train_here(undisturbed, smoke_plan(study, "readme", data_dir=here.parent))
    answer = sweep(study, *SMOKE, "--storage", undisturbed, *data)
    assert answer.returncode == 0, answer.stdout + answer.stderr

    paths = ("--storage", f"s3://{store.bucket}/runs", "--store", tmp_path / "results.db")
    options = (*SMOKE, *paths, *data)
    killed = Process(tmp_path, typed, "gss_grid", *options, ray=ray)
    killed.wait_until(lambda: _objects(store, "result.json"), WAIT_S)
    killed.kill()
    ended, begun = _objects(store, "result.json"), _objects(store, "")
    assert 1 <= len(ended) < 4
    wiped(store)

    # Finished trials are measured again, from the weights in the bucket.
    cut_off = Process(tmp_path, typed, study, *options, ray=ray)
    cut_off.wait_until(lambda: _objects(store, "") != begun, WAIT_S)
    store.off()
    time.sleep(AWAY_S)
    store.on()
    ((status, out),) = cut_off.end(timeout_s=WAIT_S)
    assert status == 0, out
    assert ended.items() <= _objects(store, "result.json").items(), (
        "a finished trial was trained again"
    )
    assert f"{len(ended)} of them to be measured again for: top_k@1" in out
    table = results_table(tmp_path, "later")
    assert table == results_table(undisturbed, "later")
    assert {row["state"] for row in table} == {"done"}
    assert all(row["top_k even 1"] for row in table)
    assert f"Report in the object store: s3://{store.bucket}/runs/reports/later-smoke-readme" in out
    reports = {key.rpartition("/")[2] for key in store.keys("runs/reports")}
    assert {"report.html", "index.html", "trials.csv"} <= reports
    assert store.secret not in out
    assert store.secret.encode() not in (tmp_path / "results.db").read_bytes()


def _objects(store: ObjectStore, name: str) -> dict[str, str]:
    return {key: tag for key, tag in store.keys("runs/trials").items() if f"/{name}" in key}


def test_missing_package_error_is_one_sentence(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "obstore.py").write_text("raise ImportError('as if it were not installed')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    paths = ("--storage", f"s3://{store.bucket}/x", "--store", tmp_path / "r.db")
    answer = sweep_process("gss_grid", "--scale", "smoke", *paths)
    assert (answer.returncode, "pip install '.[s3]'" in answer.stderr) == (2, True)
