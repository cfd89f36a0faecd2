"""A sweep whose trials, corpus and reports lie in an object store: real server, real Ray, real
kills."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cluster.run_options import RunOptions
from orchestrator.plan import PlanRequest, make_plan, scale_named
from orchestrator.storage import storage_at
from orchestrator.store.records import PlannedTrial
from orchestrator.worker import Job, TrialFunctions, run_pack
from orchestrator.worker.messages import EVENTS, Pack
from search_spaces.catalog import load_study
from tests.support.command import ROOT, results_table, sweep, sweep_process, typed
from tests.support.faulty_server import write_corpus
from tests.support.object_store import ObjectStore, object_store
from tests.support.one_ray import end_ray, start_ray
from tests.support.processes import Process
from trainables.config import AnyConfig
from trainables.runtime import Runtime
from trainables.trial_folder.outcome import TrialOutcome

STUDY = """from search_spaces.gss_grid import STUDY as GRID
from search_spaces.study import Study

STUDY = Study(name="later", trials=GRID.trials, corner=GRID.corner, measurements=(*GRID.measurements, "top_k@1"))
"""
SMOKE = ("--scale", "smoke", "--max-concurrent", "1")
MEASUREMENTS = ("perplexity@1", "spectrum@1")
pytestmark = pytest.mark.timeout(600)
AWAY_S = 10
"""Longer than a trial may take, and than the client tries a single request."""
WAIT_S = 200
TEXT = (ROOT / "README.md").read_text(encoding="utf-8") * 3


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with (
        object_store(tmp_path_factory.mktemp("s3")) as started,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in started.environment.items():
            patch.setenv(name, value)
        end_ray()  # one that starts now gives its workers these variables
        for split in ("train", "valid", "test"):
            started.client.put_object(
                Bucket=started.bucket, Key=f"data/readme/{split}.txt", Body=TEXT.encode()
            )
        yield started


def wiped(store: ObjectStore) -> None:
    """This machine is another one from here on: it has no copy of anything."""
    shutil.rmtree(store.environment["XDG_CACHE_HOME"], ignore_errors=True)


def test_killed_and_cut_off_a_sweep_ends_with_the_table_of_one_in_a_folder(
    store: ObjectStore, tmp_path: Path
) -> None:
    ray = start_ray()
    undisturbed = tmp_path / "undisturbed"
    here = write_corpus(tmp_path / "data" / "readme", train=TEXT, valid=TEXT, test=TEXT)
    study = tmp_path / "later.py"
    study.write_text(STUDY)
    answer = sweep(
        study, *SMOKE, "--storage", undisturbed, "--corpus", "readme", "--data-dir", here.parent
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr

    data = ("--corpus", "readme", "--data-dir", f"s3://{store.bucket}/data")
    place = ("--storage", f"s3://{store.bucket}/runs", "--store", tmp_path / "results.db")
    options = (*SMOKE, *place, *data)
    killed = Process(tmp_path, typed, "gss_grid", *options, ray=ray)
    killed.wait_until(lambda: _objects(store, "result.json"), WAIT_S)
    killed.kill()
    ended, begun = _objects(store, "result.json"), _objects(store, "")
    assert 1 <= len(ended) < 4
    wiped(store)

    # What had ended is measured again, from the weights in the bucket.
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
    assert f"The same report: s3://{store.bucket}/runs/reports/later-smoke-readme" in out
    reports = {key.rpartition("/")[2] for key in store.keys("runs/reports")}
    assert {"report.html", "index.html", "trials.csv"} <= reports
    assert store.secret not in out
    assert store.secret.encode() not in (tmp_path / "results.db").read_bytes()


def _objects(store: ObjectStore, name: str) -> dict[str, str]:
    """The trials' objects of this name, with their ETags."""
    return {key: tag for key, tag in store.keys("runs/trials").items() if f"/{name}" in key}


def test_a_killed_trial_goes_on_from_the_bucket_on_another_machine(
    store: ObjectStore, tmp_path: Path
) -> None:
    url = f"s3://{store.bucket}/killed"
    request = PlanRequest(settings={"training.epochs": (20,)})
    config = (
        make_plan(load_study("gss_grid"), scale_named("smoke"), "pydocs", request).trials[0].config
    )
    undisturbed, worker = (
        Process(tmp_path, work, config, str(tmp_path)),
        Process(tmp_path, work, config, url),
    )
    assert worker.hear(WAIT_S) == 1
    cache = Path(store.environment["XDG_CACHE_HOME"])
    before = max((path.name for path in cache.rglob("checkpoint-*")), default="")
    worker.wait_until(lambda: any(name > before for name in _checkpoints(store)), WAIT_S)
    worker.kill()
    assert not any(key.endswith("/result.json") for key in store.keys("killed"))
    wiped(store)

    *epochs, outcome = Process(tmp_path, work, config, url).end(WAIT_S)
    assert epochs[0] > 1, "trained from the start"
    assert _lasting(outcome) == _lasting(undisturbed.end(WAIT_S)[-1])
    names = {key.rpartition("/")[2] for key in store.keys("killed/trials")}
    assert names == {"config.json", "log.txt", "result.json", "spectrum.npy", "kept.safetensors"}


def _checkpoints(store: ObjectStore) -> list[str]:
    return [
        name
        for key in store.keys("killed/trials")
        if (name := key.rpartition("/")[2]).startswith("checkpoint-")
    ]


def work(say: Callable[[Any], None], config: AnyConfig, storage: str) -> None:
    """A worker with one trial, whose files are at the URL: says the number of every epoch, and the
    outcome."""

    def tell(text: str) -> None:
        for event in EVENTS.validate_json(text):
            if event.epoch is not None:
                say(event.epoch.epoch)
            if event.halt is not None or event.outcome is not None:
                say(event.halt or event.outcome)

    options = RunOptions(storage=storage_at(storage), runtime=Runtime(checkpoint_every_s=0.5))
    job = Job(options=options, measurements=MEASUREMENTS, functions=TrialFunctions())
    run_pack(Pack((PlannedTrial.of(config, "the trial"),)), job, tell)


def _lasting(outcome: TrialOutcome) -> list[object]:
    """What a repetition in a process of the same kind does not change."""
    losses: list[object] = [
        (epoch.epoch, epoch.train_loss, epoch.valid_loss) for epoch in outcome.epochs
    ]
    return [*losses, *(outcome.measurements[name] for name in MEASUREMENTS)]


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        (("--storage", "s3://no-such-bucket/x", "--store", "{db}"), "no bucket no-such-bucket"),
        (("--storage", "s3://no-such-bucket/x"), "name one with --store"),
        (("--storage", "s3://key:hidden-key@bucket/x", "--store", "{db}"), "leave keys out of it"),
        (("--data-dir", "s3://no-such-bucket", "--corpus", "mine"), "no bucket no-such-bucket"),
    ],
)
def test_bad_places_are_one_sentence(
    store: ObjectStore, tmp_path: Path, place: tuple[str, ...], sentence: str
) -> None:
    words = ("gss_grid", "--scale", "smoke", "--storage", str(tmp_path), *place)
    status, shown = said_of(tmp_path, *words)
    assert (status, sentence in shown) == (2, True)
    assert store.secret not in shown and "hidden-key" not in shown


def said_of(folder: Path, *words: str) -> tuple[int, str]:
    """Status and last line of the command. A process keeps the client of a bucket that it met."""
    filled = (word.format(db=folder / "r.db") for word in words)
    ((status, shown),) = Process(folder, typed, *filled).end()
    return status, shown.strip().splitlines()[-1]


def test_missing_packages_are_one_sentence(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "obstore.py").write_text("raise ImportError('as if it were not installed')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    place = ("--storage", f"s3://{store.bucket}/x", "--store", tmp_path / "r.db")
    answer = sweep_process("gss_grid", "--scale", "smoke", *place)
    assert (answer.returncode, "pip install '.[s3]'" in answer.stderr) == (2, True)
