"""A trial's files between a machine's disk and an object store: real server, real kills of the way to it."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.cluster.run_options import RunOptions
from orchestrator.storage.bucket import Bucket, BucketError, _files
from orchestrator.storage.data_folder import data_folder, on_this_machine
from orchestrator.storage.mirror import Mirror, TakenOverError
from orchestrator.worker.assignment import Assignment
from orchestrator.worker.pack_run import BrokenProcessError, Job, run_pack
from tests.support.object_store import ObjectStore, object_store
from tests.support.scripted_trials import SOUND, planned
from trainables.config import TrialConfig
from trainables.errors import UserError
from trainables.runtime import Runtime
from trainables.trial_folder.files import write_file
from trainables.trial_folder.folder import TrialFolder
from trainables.trial_folder.outcome import TrialOutcome

TRIAL = "ab" + "0" * 62
DONE = TrialOutcome(trial_id=TRIAL, state="done")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with object_store(tmp_path_factory.mktemp("s3")) as started:
        yield started


@pytest.fixture
def use(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make this process one that sees the store; keyword arguments replace what it knows of it."""

    def change(**environment: str) -> None:
        for name, value in {**store.environment, **environment}.items():
            monkeypatch.setenv(name, value)
        _files.cache_clear()

    return change


@pytest.fixture
def mirror(store: ObjectStore, use: Callable[..., None], tmp_path: Path) -> Mirror:
    """A storage of its own, seen from a machine of its own."""
    use(XDG_CACHE_HOME=str(tmp_path / "one"))
    return Mirror(Bucket(f"s3://{store.bucket}/{tmp_path.name}"))


def files(mirror: Mirror, store: ObjectStore) -> set[str]:
    """What the store has of the trial."""
    prefix = mirror.address(TRIAL).partition(store.bucket)[2].strip("/")
    return {key.rpartition("/")[2] for key in store.keys(prefix)} - {"owner"}


def test_another_machine_goes_on_from_what_the_store_has(
    mirror: Mirror, store: ObjectStore, use: Callable[..., None], tmp_path: Path
) -> None:
    with pytest.raises(RuntimeError), mirror.working(TRIAL) as folder:
        write_file(folder / "checkpoint-000000000001.safetensors", b"one")
        write_file(folder / "checkpoint-000000000002.safetensors", b"two")
        (folder / "checkpoint-000000000001.safetensors").unlink()
        (folder / ".half.tmp").write_bytes(b"ha")
        raise RuntimeError
    assert files(mirror, store) == {"checkpoint-000000000002.safetensors"}
    use(XDG_CACHE_HOME=str(tmp_path / "two"))
    with mirror.working(TRIAL) as folder:
        assert {path.name: path.read_bytes() for path in folder.glob("[!.]*")} == {
            "checkpoint-000000000002.safetensors": b"two"
        }
        TrialFolder(folder, TRIAL).write_result(DONE, None)
        (folder / "checkpoint-000000000002.safetensors").unlink()
    assert files(mirror, store) == {"result.json"}
    assert not folder.exists(), "a finished trial keeps no copy on the worker's disk"
    mirror.fetch([TRIAL, "cd" + "1" * 62])
    assert [path.name for path in (mirror.folder / "trials").rglob("*") if path.is_file()] == ["result.json"]


def test_checkpoints_are_copied_while_the_trial_runs(mirror: Mirror, store: ObjectStore) -> None:
    with mirror.working(TRIAL) as folder:
        for number in (1, 2):
            write_file(folder / f"checkpoint-{number:012d}.safetensors", b"x")
            deadline_s = time.monotonic() + 60
            while f"checkpoint-{number:012d}.safetensors" not in files(mirror, store):
                assert time.monotonic() < deadline_s
                time.sleep(0.1)


def test_a_trial_that_ends_while_the_store_is_away_waits_for_it(mirror: Mirror, store: ObjectStore) -> None:
    with mirror.working(TRIAL) as folder:
        store.off()
        back = threading.Timer(3, store.on)
        back.start()
        TrialFolder(folder, TRIAL).write_result(DONE, None)
    back.join()
    assert files(mirror, store) == {"result.json"}


def test_a_result_that_could_not_be_copied_is_on_the_disk_and_is_copied_the_next_time(
    mirror: Mirror, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.storage.bucket.AWAY_S", 0)
    with pytest.raises(BucketError, match=r"cannot be .*see that the store runs"), mirror.working(TRIAL) as folder:
        store.off()
        TrialFolder(folder, TRIAL).write_result(DONE, None)
    store.on()
    assert files(mirror, store) == set()
    with mirror.working(TRIAL) as folder:
        assert (folder / "result.json").is_file()
    assert files(mirror, store) == {"result.json"}


@pytest.mark.parametrize("harm", ["cleared", "half written", "not whole"])
def test_what_a_killed_worker_left_counts_only_where_it_is_whole(mirror: Mirror, harm: str) -> None:
    name = "checkpoint-000000000001.safetensors"
    with pytest.raises(RuntimeError), mirror.working(TRIAL) as folder:
        write_file(folder / name, b"one")
        mark = folder / ".copy"
        assert mark.is_file()
        raise RuntimeError
    if harm == "cleared":
        (folder / name).unlink()
    elif harm == "half written":
        (folder / name).rename(folder / f".{name}.1-2.tmp")
    else:  # killed while the files were being brought here
        mark.unlink()
        (folder / name).write_bytes(b"o")
    with mirror.working(TRIAL) as again:
        assert (again / name).read_bytes() == b"one"


def test_a_working_copy_that_is_cleared_meanwhile_takes_nothing_from_the_store(
    mirror: Mirror, store: ObjectStore
) -> None:
    name = "checkpoint-000000000001.safetensors"
    with pytest.raises(RuntimeError), mirror.working(TRIAL) as folder:
        write_file(folder / name, b"one")
        raise RuntimeError
    with pytest.raises(RuntimeError), mirror.working(TRIAL) as folder:
        (folder / name).unlink()
        raise RuntimeError
    assert files(mirror, store) == {name}


def test_the_worker_that_started_last_has_the_trial(
    mirror: Mirror, store: ObjectStore, use: Callable[..., None], tmp_path: Path
) -> None:
    with pytest.raises(TakenOverError, match="another worker has started this trial"), mirror.working(TRIAL) as late:
        use(XDG_CACHE_HOME=str(tmp_path / "two"))
        with mirror.working(TRIAL) as folder:
            TrialFolder(folder, TRIAL).write_result(DONE, None)
        write_file(late / "checkpoint-000000000001.safetensors", b"old")
    assert files(mirror, store) == {"result.json"}


def test_an_older_worker_stops_at_its_next_checkpoint_and_its_pack_goes_elsewhere(
    mirror: Mirror, use: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.storage.mirror.LOOK_S", 0.1)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    (trial,) = planned([SOUND])

    def cut_off(config: TrialConfig, *, directory: Path, **_: object) -> TrialOutcome:
        fence = TrialFolder(directory, config.trial_id)
        fence.take_over()
        use(XDG_CACHE_HOME=str(tmp_path / "two"))
        with mirror.working(config.trial_id):
            pass
        number = 0
        while True:
            fence.check_fence()
            number += 1
            write_file(directory / f"checkpoint-{number:012d}.safetensors", b"old")
            time.sleep(0.05)

    job = Job(title="trials", options=RunOptions(storage=tmp_path, mirror=mirror), measurements=(), run_trial=cut_off)
    pack = Assignment(configs=(TrialConfig.model_validate(trial.config),), names=("it",))
    with pytest.raises(BrokenProcessError, match="another worker has taken over"):
        run_pack(pack, job, list[str]().append)
    assert mirror.bucket.names(f"trials/{trial.trial_id[:2]}/{trial.trial_id}").keys() == {"owner"}


def test_forgetting_a_trial_removes_it_here_and_there(mirror: Mirror, store: ObjectStore) -> None:
    with mirror.working(TRIAL) as folder:
        TrialFolder(folder, TRIAL).write_result(DONE, None)
        write_file(folder / "checkpoint-000000000001.safetensors", b"x")
    mirror.forget(TRIAL, checkpoints=False)
    assert files(mirror, store) == {"checkpoint-000000000001.safetensors"}
    mirror.forget(TRIAL, checkpoints=True)
    assert files(mirror, store) == set()


def test_a_forgotten_trial_does_not_come_back_from_another_machine(
    mirror: Mirror, use: Callable[..., None], tmp_path: Path
) -> None:
    with pytest.raises(RuntimeError), mirror.working(TRIAL) as folder:
        write_file(folder / "checkpoint-000000000001.safetensors", b"towards divergence")
        raise RuntimeError
    use(XDG_CACHE_HOME=str(tmp_path / "two"))
    mirror.forget(TRIAL, checkpoints=True)
    use(XDG_CACHE_HOME=str(tmp_path / "one"))
    assert list(folder.glob("checkpoint-*"))
    with mirror.working(TRIAL) as folder:
        assert list(folder.glob("checkpoint-*")) == []


def test_a_mirror_travels_without_credentials(mirror: Mirror, store: ObjectStore) -> None:
    mirror.bucket.check()
    assert store.secret.encode() not in pickle.dumps(mirror)


@pytest.mark.parametrize(
    ("environment", "bucket", "sentence"),
    [
        ({}, "nowhere", "cannot be listed: there is no bucket nowhere: create it"),
        ({"AWS_SECRET_ACCESS_KEY": "wrong-key"}, None, "refuses these credentials .*signature"),
        ({"AWS_ACCESS_KEY_ID": "nobody"}, None, "refuses these credentials .*does not exist"),
        ({"AWS_ACCESS_KEY_ID": "", "HOME": "/nonexistent"}, None, "credentials"),
        ({"AWS_PROFILE": "nobodys"}, None, "no credentials .*nobodys"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, None, "Could not connect .*AWS_ENDPOINT_URL is right"),
        ({"AWS_ENDPOINT_URL": "127.0.0.1:9000"}, None, "AWS_ENDPOINT_URL takes an address such as https"),
    ],
)
def test_what_is_amiss_with_a_bucket_is_one_sentence(
    store: ObjectStore, use: Callable[..., None], environment: dict[str, str], bucket: str | None, sentence: str
) -> None:
    use(**environment)
    with pytest.raises(BucketError, match=sentence) as error:
        Bucket(f"s3://{bucket or store.bucket}/x").check()
    assert store.secret not in str(error.value)
    assert "wrong-key" not in str(error.value)


@pytest.mark.parametrize("text", ["gs://a/b", "s3://key:secret@bucket/x", "s3://", "file:///tmp"])
def test_only_urls_of_buckets_are_taken_and_no_secret_is_repeated(text: str) -> None:
    with pytest.raises(UserError, match="takes a folder or s3://BUCKET/PREFIX") as error:
        Bucket.at(text, "--storage")
    assert "secret@" not in str(error.value)


def test_a_corpus_is_copied_once_and_again_where_it_changed(
    store: ObjectStore, use: Callable[..., None], tmp_path: Path
) -> None:
    use(XDG_CACHE_HOME=str(tmp_path / "one"))
    for split in ("train", "valid", "test"):
        store.client.put_object(Bucket=store.bucket, Key=f"data/mine/{split}.txt", Body=f"a {split}\n".encode())
    here, data = data_folder(f"s3://{store.bucket}/data", ["mine"])
    assert here is not None and data is not None
    assert data.fetch() == here
    assert (here / "mine" / "test.txt").read_text() == "a test\n"
    before = {path: path.stat().st_mtime_ns for path in (here / "mine").glob("*.txt")}
    store.client.put_object(Bucket=store.bucket, Key="data/mine/test.txt", Body=b"another\n")
    data.fetch()
    assert (here / "mine" / "test.txt").read_text() == "another\n"
    assert (here / "mine" / "train.txt").stat().st_mtime_ns == before[here / "mine" / "train.txt"]
    use(XDG_CACHE_HOME=str(tmp_path / "two"))
    elsewhere = on_this_machine(Runtime(data_dir=here, benchmarks_dir=tmp_path), data)
    assert elsewhere.data_dir is not None
    assert (elsewhere.data_dir / "mine" / "test.txt").read_text() == "another\n"
    assert str(elsewhere.data_dir).startswith(str(tmp_path / "two"))
    assert elsewhere.benchmarks_dir == tmp_path
    use(XDG_CACHE_HOME=str(tmp_path / "one"))
    (here / "mine" / "extra.txt").write_text("downloaded")
    store.client.delete_object(Bucket=store.bucket, Key="data/mine/valid.txt")
    data.fetch()
    assert not (here / "mine" / "valid.txt").exists()
    data.push()
    assert "data/mine/extra.txt" in store.keys("data")


def test_an_object_whose_name_leads_out_of_the_folder_is_left_alone(mirror: Mirror, store: ObjectStore) -> None:
    root = mirror.bucket.url.removeprefix(f"s3://{store.bucket}/")
    for key in ("reports/x/summary.json", "reports/../../../stolen/summary.json"):
        store.client.put_object(Bucket=store.bucket, Key=f"{root}/{key}", Body=b"{}")
    mirror.fetch_cards("summary.json")
    assert (mirror.folder / "reports" / "x" / "summary.json").exists()
    assert not list(mirror.folder.parents[2].rglob("stolen"))
