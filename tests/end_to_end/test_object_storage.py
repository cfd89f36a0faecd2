"""A sweep whose trials, corpus and reports lie in an object store: real server, real Ray, real kills."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import s3_worker_program
from tests.support.command import ROOT, environment, results_table, start, sweep, sweep_process
from tests.support.faulty_server import write_corpus
from tests.support.object_store import ObjectStore, object_store
from trainables.trial_folder.outcome import TrialOutcome

STUDY = """from search_spaces.gss_grid import STUDY as GRID
from search_spaces.study import Study

STUDY = Study(name="later", trials=GRID.trials, corner=GRID.corner, measurements=(*GRID.measurements, "top_k@1"))
"""
LONGER = ("--set", "training.epochs=15", "--set", "training.epoch_tokens=8000")
"""Trials of some seconds."""
AWAY_S = 10
"""Longer than a trial may take, and than the client tries a single request."""
WAIT_S = 200
TEXT = (ROOT / "README.md").read_text(encoding="utf-8") * 3


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with object_store(tmp_path_factory.mktemp("s3")) as started, pytest.MonkeyPatch.context() as patch:
        for name, value in started.environment.items():
            patch.setenv(name, value)
        for split in ("train", "valid", "test"):
            started.client.put_object(Bucket=started.bucket, Key=f"data/readme/{split}.txt", Body=TEXT.encode())
        yield started


def wiped(store: ObjectStore) -> None:
    """This machine is another one from here on: it has no copy of anything."""
    shutil.rmtree(store.environment["XDG_CACHE_HOME"], ignore_errors=True)


@pytest.mark.usefixtures("one_ray")
def test_killed_and_cut_off_a_sweep_ends_with_the_table_of_one_in_a_folder(store: ObjectStore, tmp_path: Path) -> None:
    undisturbed = tmp_path / "undisturbed"
    here = write_corpus(tmp_path / "data" / "readme", train=TEXT, valid=TEXT, test=TEXT)
    study = tmp_path / "later.py"
    study.write_text(STUDY)
    answer = sweep(study, "--scale", "smoke", "--storage", undisturbed, "--corpus", "readme",
                   "--data-dir", here.parent, *LONGER)  # fmt: skip
    assert answer.returncode == 0, answer.stdout + answer.stderr

    data = ("--corpus", "readme", "--data-dir", f"s3://{store.bucket}/data")
    place = ("--storage", f"s3://{store.bucket}/runs", "--store", tmp_path / "results.db")
    options = ("--scale", "smoke", *place, *data, *LONGER)
    killed = start("gss_grid", *options)
    _wait_for(store, "runs/trials", "result.json", killed)
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate()
    ended, begun = _objects(store, "result.json"), _objects(store, "")
    assert 1 <= len(ended) < 4
    wiped(store)

    # What had ended is measured again, from the weights in the bucket.
    cut_off = start(study, *options)
    deadline_s = time.monotonic() + WAIT_S
    while _objects(store, "") == begun:
        assert cut_off.poll() is None, cut_off.communicate()
        assert time.monotonic() < deadline_s
        time.sleep(0.1)
    store.off()
    time.sleep(AWAY_S)
    assert cut_off.poll() is None, cut_off.communicate()
    store.on()
    out, err = cut_off.communicate(timeout=WAIT_S)
    assert cut_off.returncode == 0, out + err
    assert ended.items() <= _objects(store, "result.json").items(), "a finished trial was trained again"
    assert f"{len(ended)} of them to be measured again for: top_k@1" in out
    table = results_table(tmp_path, "later")
    assert table == results_table(undisturbed, "later")
    assert {row["state"] for row in table} == {"done"}
    assert all(row["top_k even 1"] for row in table)
    assert f"The same report: s3://{store.bucket}/runs/reports/later-smoke-readme" in out
    reports = {key.rpartition("/")[2] for key in store.keys("runs/reports")}
    assert {"report.html", "index.html", "trials.csv"} <= reports
    assert store.secret not in out + err
    assert store.secret.encode() not in (tmp_path / "results.db").read_bytes()


def _objects(store: ObjectStore, name: str) -> dict[str, str]:
    """The trials' objects of this name, with their ETags."""
    return {key: tag for key, tag in store.keys("runs/trials").items() if f"/{name}" in key}


def _wait_for(store: ObjectStore, prefix: str, name: str, process: subprocess.Popen[str]) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not any(f"/{name}" in key for key in store.keys(prefix)):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


def test_a_killed_trial_goes_on_from_the_bucket_on_another_machine(store: ObjectStore, tmp_path: Path) -> None:
    url = f"s3://{store.bucket}/killed"
    undisturbed, worker = _worker(str(tmp_path)), _worker(url)
    _wait_for(store, "killed/trials", "checkpoint-", worker)
    worker.kill()
    worker.communicate()
    assert not any(key.endswith("/result.json") for key in store.keys("killed"))
    wiped(store)

    out, err = _worker(url).communicate(timeout=WAIT_S)
    *epochs, outcome = out.splitlines()
    assert int(epochs[0]) > 1, f"trained from the start: {err}"
    expected = undisturbed.communicate(timeout=WAIT_S)[0].splitlines()[-1]
    assert _lasting(outcome) == _lasting(expected)
    names = {key.rpartition("/")[2] for key in store.keys("killed/trials")}
    assert names == {"result.json", "spectrum.npy", "kept.safetensors"}


def _worker(storage: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", s3_worker_program.__name__, storage],
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _lasting(text: str) -> list[object]:
    """What a repetition in a process of the same kind does not change."""
    outcome = TrialOutcome.model_validate_json(text)
    losses: list[object] = [(epoch.epoch, epoch.train_loss, epoch.valid_loss) for epoch in outcome.epochs]
    return [*losses, *(outcome.measurements[name] for name in s3_worker_program.MEASUREMENTS)]


@pytest.mark.parametrize(
    ("place", "variables", "sentence"),
    [
        (("--storage", "s3://no-such-bucket/x", "--store", "{db}"), {}, "there is no bucket no-such-bucket"),
        (("--storage", "s3://no-such-bucket/x"), {}, "name one with --store"),
        (("--storage", "gs://bucket/x", "--store", "{db}"), {}, "--storage takes a folder or s3://BUCKET/PREFIX"),
        (("--storage", "s3://key:hidden-key@bucket/x", "--store", "{db}"), {}, "leave keys out of it"),
        (
            ("--storage", "{here}", "--data-dir", "s3://no-such-bucket", "--corpus", "mine"),
            {},
            "no bucket no-such-buck",
        ),
        (
            ("--storage", "{url}", "--store", "{db}"),
            {"AWS_SECRET_ACCESS_KEY": "hidden-key"},
            "refuses these credential",
        ),
        (
            ("--storage", "{url}", "--store", "{db}"),
            {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"},
            "see that the store run",
        ),
        (("--storage", "{url}", "--store", "{db}"), {"PYTHONPATH": "{here}"}, "pip install '.[s3]'"),
    ],
)
def test_bad_places_are_one_sentence(
    store: ObjectStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: tuple[str, ...],
    variables: dict[str, str],
    sentence: str,
) -> None:
    (tmp_path / "s3fs.py").write_text("raise ImportError('as where it is not installed')")
    known = {"here": tmp_path, "db": tmp_path / "r.db", "url": f"s3://{store.bucket}/x"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(**known))
    # A process keeps the client of a bucket that it met first.
    command = sweep_process if variables else sweep
    answer = command("gss_grid", "--scale", "smoke", *(word.format(**known) for word in place))
    assert answer.returncode == 2, answer.stdout + answer.stderr
    (line,) = answer.stderr.strip().splitlines()
    assert line.startswith("error: ")
    assert sentence in line
    assert store.secret not in line
    assert "hidden-key" not in line
