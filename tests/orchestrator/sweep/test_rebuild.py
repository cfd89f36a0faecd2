from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.storage import FolderStorage, Storage, storage_at
from orchestrator.store import open_store
from orchestrator.sweep import check_store, rebuild_store, write_study_file
from orchestrator.sweep.study_file import read_study_file
from tests.support.filled_storage import OTHER, STATES, STRANGER, TRIALS, TUNED, fill
from tests.support.object_store import object_store
from tests.support.processes import Process, Report
from tests.support.store_rows import KEY, SPECTRUM, execute, tables
from trainables.errors import UserError
from trainables.trial_folder import sealed, unsealed


def rebuilt(url: str, storage: Storage) -> list[str]:
    messages: list[str] = []
    rebuild_store(url, storage, messages.append)
    return messages


def test_new_store_equals_old_store(url: str, storage: FolderStorage, store_url: str) -> None:
    with open_store(url) as store:
        before, order = tables(url), [summary.key for summary in store.studies()]
    assert "2 studies, 8 trials and 5 results" in "".join(rebuilt(store_url, storage))
    assert tables(store_url) == before
    with open_store(store_url) as store:
        assert [summary.key for summary in store.studies()] == order
    assert check_store(store_url, storage) == []


def test_bucket_rebuilds_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with object_store(tmp_path / "s3") as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        storage = storage_at(f"s3://{server.bucket}/runs")
        url, new = (f"sqlite:///{tmp_path}/{name}.db" for name in ("old", "new"))
        fill(url, storage)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another machine"))
        rebuilt(new, storage)
        assert tables(new) == tables(url)
        assert check_store(new, storage) == []


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("change", [flip, Path.unlink])
def test_damaged_trials_are_planned_again(
    url: str, storage: FolderStorage, change: Callable[[Path], None]
) -> None:
    folders = [storage.trial(trial.trial_id).path for trial in (*TRIALS, STRANGER)]
    change(folders[0] / "spectrum.npy")
    change(folders[1] / "measurement-later@2.json")
    change(folders[6] / "config.json")
    change(storage.root / "studies" / f"{OTHER.variant}.json")
    messages = "\n".join(rebuilt(url, storage))
    assert "spectrum.npy" in messages and STRANGER.trial_id[:12] in messages
    if change is not Path.unlink:
        assert OTHER.variant in messages and "measurement-later@2" in messages
    with open_store(url) as store:
        assert [summary.key for summary in store.studies()] == [KEY]
        states = [row.state for row in store.trials(KEY)]
        assert states == ["planned", *STATES[1:], "planned", "planned"]
        assert store.unmeasured(KEY, ["later@2"]) == {TRIALS[1].trial_id: ["later@2"]}


def test_old_file_is_moved_aside(url: str, storage: FolderStorage) -> None:
    before = tables(url)
    (storage.root / "results.db").write_bytes(b"no database" * 99)
    for number in (1, 2):
        rebuilt(url, storage)
        assert tables(url) == before
        assert len([*storage.root.glob("results.db.before-*")]) == number
    assert any(path.read_bytes() == b"no database" * 99 for path in storage.root.glob("*.before-*"))


def hold(report: Report, url: str) -> None:
    with open_store(url) as store:
        report(len(store.studies()))
        time.sleep(60)


def test_log_without_store_moves_aside(url: str, storage: FolderStorage) -> None:
    """If an old log stayed, SQLite would apply it to the rebuilt store."""
    before = tables(url)
    with open_store(url) as store:
        store.register(OTHER, [])
        log = Path(f"{storage.root}/results.db-wal").read_bytes()
    (storage.root / "results.db").unlink()
    Path(f"{storage.root}/results.db-wal").write_bytes(log)
    rebuilt(url, storage)
    assert tables(url) == before


def test_refused_measurement_is_excluded(url: str, storage: FolderStorage) -> None:
    with storage.working(TRIALS[0].trial_id) as folder:
        folder.write_measurement("other@1", ({"metric": 1.0}, 2 * SPECTRUM))
    assert "differs from that" in "".join(rebuilt(url, storage))
    with open_store(url) as store:
        assert store.unmeasured(KEY, ["other@1"])[TRIALS[0].trial_id] == ["other@1"]


def test_store_in_use_is_untouched(url: str, storage: FolderStorage, tmp_path: Path) -> None:
    process = Process(tmp_path, hold, url)
    process.receive()
    with pytest.raises(UserError, match="open"):
        rebuilt(url, storage)
    process.kill()
    rebuilt(url, storage)


def rebuild_and_die(_: Report, url: str, storage: Storage) -> None:
    with pytest.MonkeyPatch.context() as patch:
        die = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # noqa: E731
        patch.setattr("orchestrator.sweep.rebuild._record", die)
        rebuild_store(url, storage, print)


def test_kill_during_rebuild_changes_nothing(
    url: str, storage: FolderStorage, tmp_path: Path
) -> None:
    before = tables(url)
    Process(tmp_path, rebuild_and_die, url, storage).end(status=-signal.SIGKILL)
    assert tables(url) == before
    rebuilt(url, storage)
    assert tables(url) == before


@pytest.mark.usefixtures("url")
@pytest.mark.parametrize("store_url", ["postgresql"], indirect=True)
def test_database_with_studies_is_untouched(store_url: str, storage: FolderStorage) -> None:
    rebuilt(store_url, storage)
    with pytest.raises(UserError, match="createdb"):
        rebuilt(store_url, storage)


@pytest.mark.parametrize("store_url", ["postgresql"], indirect=True)
def test_slow_files_outlast_the_server(
    store_url: str, url: str, storage: FolderStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = "orchestrator.store.database.SERVER_SETTINGS"
    monkeypatch.setattr(settings, {"idle_in_transaction_session_timeout": "500ms"})
    monkeypatch.setattr(FolderStorage, "bring", lambda *_: time.sleep(1))
    rebuilt(store_url, storage)
    assert tables(store_url) == tables(url)


def test_error_leaves_the_old_store(
    url: str, storage: FolderStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tables(url)
    monkeypatch.setattr("orchestrator.sweep.rebuild._record", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        rebuilt(url, storage)
    assert tables(url) == before
    assert [path.name for path in storage.root.glob("*results.db*")] == ["results.db"]
    with pytest.raises(UserError, match="--storage"):
        rebuilt(url, FolderStorage(storage.root / "nothing"))


def test_check_names_different_trials(url: str, storage: FolderStorage) -> None:
    assert check_store(url, storage) == []
    execute(url, "DELETE FROM epoch WHERE epoch = 1")
    execute(url, "DELETE FROM result WHERE measurement = 'later'")
    (storage.trial(STRANGER.trial_id).path / "result.json").unlink()
    messages = check_store(url, storage)
    assert sorted(sentence.split()[1].rstrip(":") for sentence in messages) == sorted(
        trial.trial_id[:12] for trial in (*TRIALS[:2], STRANGER)
    )


def test_older_study_file_keeps_positions(storage: FolderStorage) -> None:
    """Study files of version 0.1 have the key `place` instead of `position`."""
    write_study_file(storage, OTHER, datetime.now(UTC), TUNED)
    [path] = storage.study_files()
    text = unsealed(path).decode()
    assert '"position":' in text
    path.write_bytes(sealed(text.replace('"position":', '"place":')))
    assert [trial.position for trial in read_study_file(path).trials] == [
        trial.position for trial in TUNED
    ]
