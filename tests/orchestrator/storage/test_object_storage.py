"""A trial's files between a machine's disk and an object store: real server, real kills of the way
to it."""

from __future__ import annotations

import contextlib
import functools
import pickle
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
import torch

from orchestrator.cluster.run_options import RunOptions
from orchestrator.storage.bucket import Bucket, BucketError, _files
from orchestrator.storage.data_folder import data_folder_at, on_this_machine
from orchestrator.storage.object_storage import ObjectStorage
from orchestrator.storage.working_copy import WorkingCopy
from orchestrator.worker import Job, TrialFunctions, run_pack
from orchestrator.worker.failures import BrokenProcessError
from orchestrator.worker.messages import Pack
from tests.support.object_store import ObjectStore, object_store
from tests.support.scripted_trials import SOUND, planned
from trainables.config import TrialConfig
from trainables.runtime import Runtime
from trainables.trial.trial_run import run_trial
from trainables.trial_folder.checkpoint import Checkpoints
from trainables.trial_folder.files import DamagedFileError, write_file
from trainables.trial_folder.folder import SupersededError, TrialFolder, trial_directory
from trainables.trial_folder.outcome import TrialOutcome

TRIAL = "ab" + "0" * 62
PLACE = trial_directory(Path(), TRIAL).as_posix()
DONE = TrialOutcome(trial_id=TRIAL, state="done")
OLD = TrialOutcome(trial_id=TRIAL, state="diverged", cause="an older worker")
Move = Callable[[str], None]
"""Make this process one on the machine of that name: what lies on the disk of another one is out of
its sight."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    """The server, in the environment of this process."""
    with (
        object_store(tmp_path_factory.mktemp("s3")) as started,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in started.environment.items():
            patch.setenv(name, value)
        _files.cache_clear()
        yield started
    _files.cache_clear()


@pytest.fixture
def move(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Move:
    return lambda machine: monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / machine))


@pytest.fixture
def storage(store: ObjectStore, move: Move, tmp_path: Path) -> ObjectStorage:
    """A storage of its own, seen from machine one."""
    move("one")
    return ObjectStorage(Bucket(f"s3://{store.bucket}/{tmp_path.name}"))


def names(storage: ObjectStorage) -> set[str]:
    """What the store has of the trial."""
    return set(storage.bucket.files(PLACE))


def save(folder: TrialFolder, step: int, content: bytes = b"x") -> None:
    write_file(folder.checkpoint(step), content)


def name_of(step: int) -> str:
    return TrialFolder(Path(), TRIAL).checkpoint(step).name


def stopped(storage: ObjectStorage, action: Callable[[TrialFolder], object]) -> TrialFolder:
    """The folder here after a worker did `action` and was stopped, its files copied."""
    with pytest.raises(RuntimeError), storage.working(TRIAL) as folder:
        action(folder)
        raise RuntimeError
    return folder


def killed(storage: ObjectStorage, action: Callable[[TrialFolder], object]) -> None:
    """A worker on this machine that did `action` and was killed before it could copy anything."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WorkingCopy, "_push", lambda _: None)
        stopped(storage, action)


def train(
    folder: TrialFolder, outcome: TrialOutcome = DONE, weights: bytes = b"of the later one"
) -> None:
    write_file(folder.kept_weights, weights)
    folder.write_result(outcome, None)


def train_and_leave_a_checkpoint(folder: TrialFolder) -> None:
    save(folder, 9)
    train(folder, OLD, b"of the killed one")


def write_top_k(folder: TrialFolder) -> None:
    folder.write_measurement("top_k@1", ({"words": "{}"}, None))


def save_two(folder: TrialFolder) -> None:
    save(folder, 1, b"one")
    save(folder, 2, b"two")


def test_another_machine_goes_on_from_what_the_store_has(
    storage: ObjectStorage, move: Move
) -> None:
    stopped(storage, save_two)
    stopped(storage, lambda folder: folder.checkpoint(1).unlink())
    stopped(storage, lambda folder: (folder.path / ".half.tmp").write_bytes(b"ha"))
    assert names(storage) == {name_of(2), "worker"}
    move("two")
    with storage.working(TRIAL) as folder:
        assert {path.name: path.read_bytes() for path in folder.path.glob("[!.]*")} == {
            name_of(2): b"two"
        }
        folder.write_result(DONE, None)
        folder.forget_checkpoints()
    assert names(storage) == {"result.json"}
    assert not folder.path.exists(), "a finished trial keeps no copy on the worker's disk"
    storage.bring([TRIAL, "cd" + "1" * 62])
    assert storage.trial(TRIAL).outcome() == DONE
    assert len([path for path in (storage.folder / "trials").rglob("*") if path.is_file()]) == 1


def test_a_result_that_could_not_be_copied_is_on_the_disk_and_is_copied_the_next_time(
    storage: ObjectStorage, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.storage.bucket.AWAY_S", 0)
    with (
        pytest.raises(BucketError, match=r"cannot be .*see that the store runs"),
        storage.working(TRIAL) as folder,
    ):
        store.off()
        folder.write_result(DONE, None)
    store.on()
    assert names(storage) == {"worker"}
    with storage.working(TRIAL) as folder:
        assert folder.outcome() == DONE
    assert names(storage) == {"result.json"}


def test_what_is_damaged_in_the_store_is_missed_as_in_a_folder(
    storage: ObjectStorage, move: Move
) -> None:
    def save_two_checkpoints(folder: TrialFolder) -> None:
        for step in (1, 2):
            Checkpoints(folder).save(step, {"x": torch.ones(2)}, {"step": step})

    notes: list[str] = []
    stopped(storage, save_two_checkpoints)
    damage(storage, name_of(2))
    move("two")
    with storage.working(TRIAL) as folder:
        newest = Checkpoints(TrialFolder(folder.path, TRIAL, notes.append)).latest("cpu")
        assert newest is not None and newest[1]["step"] == 1
        assert f"{name_of(2)} is not what was written" in notes[0]
        outcome = DONE.model_copy(update={"measurements": {"spectrum@1": {"press_rank": 2}}})
        folder.write_result(outcome, np.ones(2))
        folder.forget_checkpoints()
    for name in ("spectrum.npy", "result.json"):
        damage(storage, name)
        storage.bring([TRIAL])
        with pytest.raises(DamagedFileError, match=f"{name} is not what was written"):
            storage.trial(TRIAL).result()
    storage.set_aside_result(TRIAL)
    assert names(storage) == {"log.txt", "result.json.unusable", "spectrum.npy"}
    with storage.working(TRIAL) as folder:
        assert folder.outcome() is None


def damage(storage: ObjectStorage, name: str) -> None:
    """Flip a bit of its last byte but one."""
    [content] = storage.bucket.read([f"{PLACE}/{name}"]).values()
    storage.bucket.write(f"{PLACE}/{name}", content[:-2] + bytes([content[-2] ^ 1]) + content[-1:])


def test_what_a_killed_worker_left_counts_only_where_it_is_further_on(
    storage: ObjectStorage,
) -> None:
    folder = stopped(storage, save_two)
    folder.checkpoint(1).unlink()
    folder.checkpoint(2).rename(folder.path / f".{name_of(2)}.1-2.tmp")
    with storage.working(TRIAL) as again:
        assert [path.read_bytes() for path in again.checkpoints()] == [b"one", b"two"]
    stopped(storage, lambda folder: save(folder, 3, b"three"))
    storage.bucket.remove([f"{PLACE}/{name_of(3)}"])
    with storage.working(TRIAL) as again:
        assert again.checkpoint(3).read_bytes() == b"three"


def test_a_measurement_that_could_not_be_copied_is_not_taken_again(storage: ObjectStorage) -> None:
    with storage.working(TRIAL) as folder:
        folder.write_result(DONE, None)
    stopped(storage, write_top_k)
    storage.bucket.remove([f"{PLACE}/measurement-top_k@1.json"])
    with storage.working(TRIAL) as folder:
        assert folder.measurement("top_k@1") is not None
    assert names(storage) == {"result.json", "measurement-top_k@1.json"}


def test_a_working_copy_that_is_cleared_meanwhile_takes_nothing_from_the_store(
    storage: ObjectStorage,
) -> None:
    stopped(storage, lambda folder: save(folder, 1))
    stopped(storage, TrialFolder.forget_checkpoints)
    assert names(storage) == {name_of(1), "worker"}


def test_an_older_worker_writes_nothing_more_and_its_pack_goes_elsewhere(
    storage: ObjectStorage, move: Move, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.storage.working_copy.LOOK_S", 0.1)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    (trial,) = planned([SOUND])

    def cut_off(config: TrialConfig, *, directory: Path, **_: object) -> TrialOutcome:
        folder = TrialFolder(directory, config.trial_id)
        folder.take_over()
        save(folder, 1, b"old")
        _wait_until(lambda: len(storage.bucket.files("trials")) == 2)
        move("two")
        with storage.working(config.trial_id) as later:
            later.take_over()
            later.forget_checkpoints()
            later.write_result(TrialOutcome(trial_id=config.trial_id, state="done"), None)
            later.leave()
        for step in range(2, 1000):
            folder.check_fence()
            save(folder, step, b"old")
            time.sleep(0.05)
        raise AssertionError("it was not stopped")

    folder_name = trial_directory(Path(), trial.trial_id).relative_to("trials")
    job = Job(
        options=RunOptions(storage=storage),
        measurements=(),
        functions=TrialFunctions(run_trial=cut_off),
    )
    with pytest.raises(BrokenProcessError, match="another worker has taken over"):
        run_pack(Pack((trial,)), job, list[str]().append)
    assert set(storage.bucket.files("trials")) == {f"{folder_name}/result.json"}


@pytest.mark.parametrize("ended", [False, True], ids=["runs", "has ended"])
def test_an_older_worker_that_was_cut_off_since_its_start_copies_nothing_over_what_a_later_one_wrote(
    storage: ObjectStorage, move: Move, monkeypatch: pytest.MonkeyPatch, ended: bool
) -> None:
    monkeypatch.setattr(
        "orchestrator.storage.working_copy.LOOK_S", 600
    )  # its first copy is that of its end
    with contextlib.ExitStack() as later_one:
        with (
            pytest.raises(SupersededError, match="share a --store too"),
            storage.working(TRIAL) as older,
        ):
            older.take_over()
            move("two")
            later = later_one.enter_context(storage.working(TRIAL))
            later.take_over()
            later.write_result(DONE, None)
            later.leave()
            if ended:
                later_one.close()
            older.write_result(OLD, None)
            older.leave()
        assert names(storage) == ({"result.json"} if ended else {"worker"})
    storage.bring([TRIAL])
    assert storage.trial(TRIAL).outcome() == DONE


def test_what_a_killed_worker_left_does_not_replace_a_result_from_elsewhere(
    storage: ObjectStorage, move: Move
) -> None:
    killed(storage, train_and_leave_a_checkpoint)
    move("two")
    with storage.working(TRIAL) as folder:
        train(folder)
    move("one")
    with storage.working(TRIAL) as folder:
        outcome = folder.outcome()
        assert outcome is not None and outcome.state == "done"
        assert folder.kept_weights.read_bytes() == b"of the later one"
    assert names(storage) == {"result.json", "kept.safetensors"}


def test_measurements_that_a_killed_worker_left_do_not_remove_those_from_elsewhere(
    storage: ObjectStorage, move: Move
) -> None:
    with storage.working(TRIAL) as folder:
        train(folder)
    killed(
        storage,
        lambda folder: folder.write_measurement("spectrum@2", ({"press_rank": 2}, np.ones(2))),
    )
    move("two")
    with storage.working(TRIAL) as folder:
        write_top_k(folder)
    move("one")
    with storage.working(TRIAL) as folder:
        assert folder.measurement("top_k@1") is not None
    assert names(storage) == {"result.json", "kept.safetensors", "measurement-top_k@1.json"}


def test_a_trial_whose_objects_were_all_removed_starts_anew(storage: ObjectStorage) -> None:
    killed(storage, train_and_leave_a_checkpoint)
    storage.bucket.remove([f"{PLACE}/{name}" for name in names(storage)])
    with storage.working(TRIAL) as folder:
        assert folder.outcome() is None
        assert folder.checkpoints() == []


def test_nothing_but_the_result_stays_after_an_end_whatever_came_before(
    storage: ObjectStorage,
) -> None:
    config = TrialConfig.model_validate(planned([SOUND])[0].config)
    directory = trial_directory(Path(), config.trial_id)
    with pytest.raises(RuntimeError), storage.working(config.trial_id) as folder:
        folder.take_over()
        save(folder, 1)
        folder.write_result(TrialOutcome(trial_id=config.trial_id, state="done"), None)
        raise RuntimeError  # killed before it cleared up
    with storage.working(config.trial_id) as folder:
        storage.bucket.write(f"{directory}/{name_of(9)}", b"still under way when this worker began")
        run_trial(config, directory=folder.path, runtime=Runtime())
    assert set(storage.bucket.files(str(directory))) == {"result.json"}


def test_a_forgotten_trial_is_gone_and_does_not_come_back_from_another_machine(
    storage: ObjectStorage, move: Move
) -> None:
    with storage.working(TRIAL) as folder:
        folder.write_result(DONE, None)
        save(folder, 1)
    storage.bring([TRIAL])
    storage.forget(TRIAL, checkpoints=False)
    assert names(storage) == {name_of(1)}
    assert storage.trial(TRIAL).outcome() is None
    folder = stopped(storage, lambda folder: save(folder, 2, b"towards divergence"))
    move("two")
    storage.forget(TRIAL, checkpoints=True)
    assert names(storage) == set()
    move("one")
    assert folder.checkpoints()
    with storage.working(TRIAL) as folder:
        assert folder.checkpoints() == []


def _wait_until(true: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def test_a_storage_travels_without_credentials(storage: ObjectStorage, store: ObjectStore) -> None:
    storage.bucket.check()
    assert store.secret.encode() not in pickle.dumps(storage)


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"AWS_ACCESS_KEY_ID": "nobody"}, "refuses these credentials .*does not exist"),
        ({"AWS_ACCESS_KEY_ID": "", "HOME": "/nonexistent"}, "credentials"),
        ({"AWS_PROFILE": "nobodys"}, "no credentials .*nobodys"),
        ({"AWS_ENDPOINT_URL": "127.0.0.1:9000"}, "AWS_ENDPOINT_URL takes an address such as https"),
    ],
)
def test_what_is_amiss_with_a_bucket_is_one_sentence(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], sentence: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("orchestrator.storage.bucket._files", functools.cache(_files.__wrapped__))
    with pytest.raises(BucketError, match=sentence) as error:
        Bucket(f"s3://{store.bucket}/x").check()
    assert store.secret not in str(error.value)


def test_a_corpus_is_copied_once_and_again_where_it_changed(
    store: ObjectStore, move: Move, tmp_path: Path
) -> None:
    move("one")
    for split in ("train", "valid", "test"):
        store.client.put_object(
            Bucket=store.bucket, Key=f"data/mine/{split}.txt", Body=f"a {split}\n".encode()
        )
    here, data = data_folder_at(f"s3://{store.bucket}/data", ["mine"])
    assert here is not None and data is not None
    assert data.fetch() == here
    assert (here / "mine" / "test.txt").read_text() == "a test\n"
    before = {path: path.stat().st_mtime_ns for path in (here / "mine").glob("*.txt")}
    store.client.put_object(Bucket=store.bucket, Key="data/mine/test.txt", Body=b"another\n")
    data.fetch()
    assert (here / "mine" / "test.txt").read_text() == "another\n"
    assert (here / "mine" / "train.txt").stat().st_mtime_ns == before[here / "mine" / "train.txt"]
    move("two")
    elsewhere = on_this_machine(Runtime(data_dir=here, benchmarks_dir=tmp_path), data)
    assert elsewhere.data_dir is not None
    assert (elsewhere.data_dir / "mine" / "test.txt").read_text() == "another\n"
    assert str(elsewhere.data_dir).startswith(str(tmp_path / "two"))
    assert elsewhere.benchmarks_dir == tmp_path
    move("one")
    (here / "mine" / "extra.txt").write_text("downloaded")
    store.client.delete_object(Bucket=store.bucket, Key="data/mine/valid.txt")
    data.fetch()
    assert not (here / "mine" / "valid.txt").exists()
    data.push()
    assert "data/mine/extra.txt" in store.keys("data")


def test_an_object_whose_name_leads_out_of_the_folder_is_left_alone(
    storage: ObjectStorage, store: ObjectStore
) -> None:
    root = storage.bucket.url.removeprefix(f"s3://{store.bucket}/")
    for key in ("reports/x/summary.json", "reports/../../../stolen/summary.json"):
        store.client.put_object(Bucket=store.bucket, Key=f"{root}/{key}", Body=b"{}")
    storage.bring_reports("summary.json")
    assert (storage.folder / "reports" / "x" / "summary.json").exists()
    assert not list(storage.folder.parents[2].rglob("stolen"))


def test_a_report_is_published_with_its_trials_pages_and_again_only_what_changed(
    storage: ObjectStorage, store: ObjectStore
) -> None:
    reports = storage.folder / "reports"
    page, index = reports / "x" / "report.html", reports / "index.html"
    trial = page.parent / "trials" / "1a2b.html"
    trial.parent.mkdir(parents=True)
    for path in (page, index, trial, page.with_name(".hidden"), reports / "of_another_report.html"):
        path.write_text(path.name)
    assert storage.publish_report(page, index) == f"{storage.bucket.url}/reports/x/report.html"
    root = storage.bucket.url.removeprefix(f"s3://{store.bucket}/")

    def times() -> dict[str, datetime]:
        listed = store.client.list_objects_v2(Bucket=store.bucket, Prefix=f"{root}/reports")[
            "Contents"
        ]
        return {
            entry["Key"].removeprefix(f"{root}/reports/"): entry["LastModified"] for entry in listed
        }

    first = times()
    assert set(first) == {"x/report.html", "x/trials/1a2b.html", "index.html"}
    answer = store.client.get_object(Bucket=store.bucket, Key=f"{root}/reports/x/trials/1a2b.html")
    assert (answer["Body"].read(), answer["ContentType"]) == (b"1a2b.html", "text/html")
    time.sleep(1.1)  # times of objects are whole seconds
    page.write_text("REPORT.html")
    storage.publish_report(page, index)
    assert {name for name, written in times().items() if written != first[name]} == {
        "x/report.html"
    }
