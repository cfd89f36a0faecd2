from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.cluster import RunOptions
from orchestrator.storage import (
    Bucket,
    BucketError,
    storage_at,
)
from orchestrator.storage.bucket import _client
from orchestrator.storage.object_storage import ObjectStorage
from orchestrator.storage.working_copy import WorkingCopy
from orchestrator.worker import Job, Pack, TrialFunctions, run_pack
from orchestrator.worker.failures import BrokenProcessError
from tests.orchestrator.storage.conftest import Move
from tests.orchestrator.storage.test_contract import (
    DONE,
    OLD,
    TRIAL,
    finish,
    save,
    save_two,
    stopped,
)
from tests.support.command import wait_for
from tests.support.object_store import ObjectStore
from tests.support.scripted_trials import SOUND, planned
from trainables.config import TrialConfig
from trainables.errors import UserError
from trainables.runtime import Runtime
from trainables.trial import run_trial
from trainables.trial_folder import TrialFolder, TrialOutcome, trial_directory

PLACE = trial_directory(Path(), TRIAL).as_posix()


@pytest.fixture
def storage(url: str, move: Move) -> ObjectStorage:  # noqa: ARG001
    opened = storage_at(url)
    assert isinstance(opened, ObjectStorage)
    return opened


def names(storage: ObjectStorage) -> set[str]:
    return set(storage.bucket.files(PLACE))


def name_of(step: int) -> str:
    return TrialFolder(Path(), TRIAL).checkpoint(step).name


def killed(storage: ObjectStorage, action: Callable[[TrialFolder], object]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WorkingCopy, "_push", lambda _: None)
        stopped(storage, action)


def save_and_finish(folder: TrialFolder) -> None:
    save(folder, 9)
    finish(folder, OLD)


def save_and_measure(folder: TrialFolder) -> None:
    save(folder, 3)
    write_top_k(folder)


def write_top_k(folder: TrialFolder) -> None:
    folder.write_measurement("top_k@1", ({"words": "{}"}, None))


def test_store_equals_the_folder(storage: ObjectStorage, move: Move) -> None:
    stopped(storage, save_two)
    stopped(storage, lambda folder: folder.checkpoint(1).unlink())
    stopped(storage, lambda folder: (folder.path / ".half.tmp").write_bytes(b"ha"))
    assert names(storage) == {name_of(2), "worker"}
    move("two")
    with storage.working(TRIAL) as folder:
        assert [path.name for path in folder.path.glob("[!.]*")] == [name_of(2)]
        finish(folder)
        folder.forget_checkpoints()
    assert names(storage) == {"result.json"}
    assert not folder.path.exists(), "a finished trial keeps no copy on the worker's disk"


def test_outage_result_is_copied_later(
    storage: ObjectStorage, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.storage.bucket.AWAY_S", 0)
    with (
        pytest.raises(BucketError, match="store runs"),
        storage.working(TRIAL) as folder,
    ):
        store.off()
        finish(folder)
    store.on()
    assert names(storage) == {"worker"}
    with storage.working(TRIAL) as folder:
        assert folder.outcome() == DONE
    assert names(storage) == {"result.json"}


def test_incomplete_copy_is_fetched_again(storage: ObjectStorage) -> None:
    folder = stopped(storage, save_two)
    folder.checkpoint(2).rename(folder.path / f".{name_of(2)}.1-2.tmp")
    with storage.working(TRIAL) as again:
        assert [path.name for path in again.checkpoints()] == [name_of(1), name_of(2)]


def test_uncopied_local_files_are_kept(storage: ObjectStorage) -> None:
    stopped(storage, lambda folder: save(folder, 1))
    killed(storage, save_and_measure)
    with storage.working(TRIAL) as again:
        assert again.checkpoint(3).exists()
        assert again.measurement("top_k@1") is not None


def test_cleared_copy_leaves_the_store(storage: ObjectStorage) -> None:
    stopped(storage, lambda folder: save(folder, 1))
    stopped(storage, TrialFolder.forget_checkpoints)
    assert names(storage) == {name_of(1), "worker"}


def test_superseded_worker_stops(
    storage: ObjectStorage, move: Move, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.storage.working_copy.LOOK_S", 0.1)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    (trial,) = planned([SOUND])

    def cut_off(config: TrialConfig, *, directory: Path, **_: object) -> TrialOutcome:
        folder = TrialFolder(directory, config.trial_id)
        folder.take_over()
        save(folder, 1)
        wait_for(
            lambda: len(storage.bucket.files("trials")) == 2, timeout_s=60, event="a first copy"
        )
        move("two")
        with storage.working(config.trial_id) as later:
            later.take_over()
            later.forget_checkpoints()
            later.write_result(TrialOutcome(trial_id=config.trial_id, state="done"), None)
            later.fence.drop()
        for step in range(2, 1000):
            folder.check_fence()
            save(folder, step)
            time.sleep(0.05)
        raise AssertionError("the worker was not stopped")

    functions = TrialFunctions(run_trial=cut_off)
    job = Job(options=RunOptions(storage=storage), measurements=(), functions=functions)
    with pytest.raises(BrokenProcessError, match="taken over"):
        run_pack(Pack((trial,)), job, lambda *_: None)
    folder_name = trial_directory(Path(), trial.trial_id).relative_to("trials")
    assert set(storage.bucket.files("trials")) == {f"{folder_name}/result.json"}


def test_killed_copy_replaces_nothing(storage: ObjectStorage, move: Move) -> None:
    killed(storage, save_and_finish)
    move("two")
    with storage.working(TRIAL) as folder:
        finish(folder)
        write_top_k(folder)
    move("one")
    with storage.working(TRIAL) as folder:
        assert folder.outcome() == DONE
        assert folder.measurement("top_k@1") is not None
    assert names(storage) == {"result.json", "measurement-top_k@1.json"}


def test_trial_without_objects_starts_again(storage: ObjectStorage) -> None:
    killed(storage, save_and_finish)
    storage.bucket.remove([f"{PLACE}/{name}" for name in names(storage)])
    with storage.working(TRIAL) as folder:
        assert folder.outcome() is None
        assert folder.checkpoints() == []


def test_only_the_result_stays(storage: ObjectStorage) -> None:
    config = TrialConfig.model_validate(planned([SOUND])[0].config)
    directory = trial_directory(Path(), config.trial_id)
    with pytest.raises(RuntimeError), storage.working(config.trial_id) as folder:
        folder.take_over()
        save(folder, 1)
        folder.write_result(TrialOutcome(trial_id=config.trial_id, state="done"), None)
        raise RuntimeError  # killed before it removed its files
    with storage.working(config.trial_id) as folder:
        storage.bucket.write(f"{directory}/{name_of(9)}", b"still under way when this worker began")
        run_trial(config, directory=folder.path, runtime=Runtime())
    assert set(storage.bucket.files(str(directory))) == {"result.json"}


def test_storage_travels_without_credentials(storage: ObjectStorage, store: ObjectStore) -> None:
    storage.check()
    assert store.secret.encode() not in pickle.dumps(storage)


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "hidden"}, "refuses these credentials"),
        ({"AWS_ACCESS_KEY_ID": "", "HOME": "/nonexistent"}, "no credentials"),
        ({"AWS_PROFILE": "nobodys"}, "no credentials .*nobodys"),
        ({"AWS_ENDPOINT_URL": "127.0.0.1:9000"}, "address such as https"),
    ],
)
def test_bucket_error_is_one_sentence(
    store: ObjectStore,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    sentence: str,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(BucketError, match=sentence) as error:
        Bucket(url).check()
    assert store.secret not in str(error.value) and "hidden" not in str(error.value)
    _client.cache_clear()


@pytest.mark.parametrize("address", ["gs://bucket/x", "az://container/x", "s3://bucket"])
def test_object_store_addresses(address: str) -> None:
    assert str(storage_at(address)) == address


@pytest.mark.parametrize(
    "address", ["ftp://host/x", "s3://key:secret@bucket/x", "s3://b", "s3://b/../x y"]
)
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(UserError, match="--storage") as error:
        storage_at(address)
    assert "secret" not in str(error.value)


def test_outside_object_path_is_refused(storage: ObjectStorage, store: ObjectStore) -> None:
    root = storage.bucket.url.removeprefix(f"s3://{store.bucket}/")
    key = f"{root}/reports/../../../stolen/summary.json"
    store.client.put_object(Bucket=store.bucket, Key=key, Body=b"{}")
    with pytest.raises(BucketError, match="invalid path"):
        storage.bring_reports("summary.json")
    assert not list(storage.folder.parents[2].rglob("stolen"))


def test_report_is_published_with_pages(storage: ObjectStorage, store: ObjectStore) -> None:
    reports = storage.folder / "reports"
    page, index = reports / "x" / "report.html", reports / "index.html"
    trial = page.parent / "trials" / "1a2b.html"
    trial.parent.mkdir(parents=True)
    for path in (page, index, trial, page.with_name(".hidden"), reports / "of_another_report.html"):
        path.write_text(path.name)
    assert storage.publish_report(page, index) == f"{storage.bucket.url}/reports/x/report.html"
    root = storage.bucket.url.removeprefix(f"s3://{store.bucket}/")
    published = {key.removeprefix(f"{root}/reports/") for key in store.keys(f"{root}/reports")}
    assert published == {"x/report.html", "x/trials/1a2b.html", "index.html"}
    answer = store.client.get_object(Bucket=store.bucket, Key=f"{root}/reports/x/trials/1a2b.html")
    assert (answer["Body"].read(), answer["ContentType"]) == (b"1a2b.html", "text/html")
