from __future__ import annotations

import csv
import io
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from orchestrator.storage import FolderStorage, storage_at
from orchestrator.store import open_store
from orchestrator.sweep import check_store, rebuild_store
from tests.support.command import sweep
from tests.support.filled_storage import OTHER, STRANGER, TRIALS, TUNED, fill
from tests.support.object_store import object_store
from tests.support.processes import Process, Report
from tests.support.store_rows import KEY, tables
from trainables.trial_folder import locked

Typed = Callable[..., CompletedProcess[str]]
OWN = [trial.trial_id for trial in TRIALS[1:]]
SHARED = TRIALS[0].trial_id
SIZES = {"kept.safetensors": 700, "checkpoint-7.safetensors": 50, "files/a/b.txt": 3}
KINDS = ("weights", "checkpoints", "files")


@pytest.fixture
def typed(url: str, storage: FolderStorage) -> Typed:
    """Add files of every kind to a done trial of one study and to the shared trial."""
    assert url
    for trial_id in (OWN[0], SHARED):
        for name, size in SIZES.items():
            path = storage.trial(trial_id).path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"x" * size)
    for key in (KEY, OTHER):
        page = storage.root / "reports" / key.variant / "report.html"
        page.parent.mkdir(parents=True)
        page.touch()
    return lambda *words: sweep(*words, "--storage", storage.root)


def contents(folder: Path) -> dict[Path, bytes]:
    """Return the content of each file, without the store and the empty lock files."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "lock")
    return {path: path.read_bytes() for path in files if "results.db" not in path.name}


def bytes_of(storage: FolderStorage, *trial_ids: str) -> int:
    paths = [path for one in trial_ids for path in storage.trial(one).path.rglob("*")]
    return sum(path.stat().st_size for path in paths if path.is_file())


def test_sizes_are_sums_of_files(typed: Typed, storage: FolderStorage) -> None:
    rows = list(csv.DictReader(io.StringIO(typed("status", "--sizes", "--format", "csv").stdout)))
    totals = {row["study"]: int(row["total"]) for row in rows}
    assert totals == {
        KEY.study: bytes_of(storage, SHARED, *OWN),
        OTHER.study: bytes_of(storage, *(trial.trial_id for trial in TUNED)),
        "total": bytes_of(storage, SHARED, *OWN, STRANGER.trial_id),
    }
    assert [int(rows[0][kind]) for kind in KINDS] == [2 * size for size in SIZES.values()]
    assert [int(rows[1][kind]) for kind in KINDS] == list(SIZES.values())
    assert "kB" in typed("status", OTHER.study, "--sizes").stdout


@pytest.mark.parametrize("options", [(KEY.study,), (KEY.study, "--weights"), (OWN[0][:9],)])
def test_dry_run_changes_nothing(
    typed: Typed, storage: FolderStorage, url: str, options: tuple[str, ...]
) -> None:
    files, rows = contents(storage.root), tables(url)
    answer = typed("forget", *options)
    assert answer.returncode == 0 and "--yes" in answer.stdout
    size = 750 if "--weights" in options else bytes_of(storage, *OWN)
    if options[0] == KEY.study:
        assert f"{size / 1000:.1f} kB" in answer.stdout and OTHER.variant in answer.stdout
    assert (contents(storage.root), tables(url)) == (files, rows)


def test_forgotten_study_does_not_return(typed: Typed, storage: FolderStorage, url: str) -> None:
    files, rows = contents(storage.root), tables(url)
    assert typed("forget", KEY.variant, "--yes").returncode == 0
    gone = [*OWN, KEY.variant]
    left = {path: data for path, data in files.items() if not set(path.parts) & set(gone)}
    left.pop(storage.root / "studies" / f"{KEY.variant}.json")
    assert contents(storage.root) == left
    after = tables(url)
    for name, table in rows.items():
        others = [row for row in table if KEY.study not in row and not any(x in row for x in OWN)]
        assert after[name] == others
    assert check_store(url, storage) == []
    rebuild_store(url, storage, print)
    assert tables(url) == after


def test_forgotten_trial_is_planned_again(typed: Typed, storage: FolderStorage, url: str) -> None:
    for trial_id in (SHARED, STRANGER.trial_id):
        assert typed("forget", trial_id[:20], "--yes").returncode == 0
        assert not storage.trial(trial_id).path.exists()
    with open_store(url) as store:
        for key in (KEY, OTHER):
            states = {row.trial_id: row.state for row in store.trials(key)}
            assert states[SHARED] == "planned"
        assert (store.epochs(SHARED), store.spectra([SHARED])) == ([], {})
        assert store.done() == [OWN[0]]
    after = tables(url)
    rebuild_store(url, storage, print)
    assert tables(url) == after


def test_weights_go_and_results_stay(typed: Typed, storage: FolderStorage, url: str) -> None:
    files, rows = contents(storage.root), tables(url)
    assert typed("forget", KEY.study, "--weights", "--yes").returncode == 0
    folder = storage.trial(OWN[0]).path
    del files[folder / "kept.safetensors"], files[folder / "checkpoint-7.safetensors"]
    assert (contents(storage.root), tables(url)) == (files, rows)


def test_running_trials_are_not_forgotten(typed: Typed, storage: FolderStorage, url: str) -> None:
    files = contents(storage.root)
    with open_store(url) as store:
        store.claim([OWN[-1]], owner="elsewhere:1:2:3", lease_s=600)
        for target in (KEY.study, OWN[-1]):
            answer = typed("forget", target, "--yes")
            assert (answer.returncode, "running" in answer.stderr) == (2, True)
        store.release("elsewhere:1:2:3")
    with locked(storage.trial(OWN[1]).path):
        answer = typed("forget", KEY.study, "--yes")
    assert (answer.returncode, "running" in answer.stderr) == (2, True)
    assert contents(storage.root) == files
    with open_store(url) as store:
        assert Counter(row.state for row in store.trials(KEY))["done"] == 2


def forget_and_die(_: Report, root: Path, removals: int) -> None:
    counts = iter(range(removals))

    def die_later(event: str, _: object) -> None:
        if event in ("os.remove", "os.rmdir") and next(counts, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(die_later)
    sweep("forget", KEY.study, "--yes", "--storage", root)


def test_killed_forget_can_be_repeated(
    typed: Typed, storage: FolderStorage, url: str, tmp_path: Path
) -> None:
    for removals in (3, 9):
        Process(tmp_path, forget_and_die, storage.root, removals).end(status=-signal.SIGKILL)
        with open_store(url) as store:
            assert KEY in [summary.key for summary in store.studies()]
    rebuild_store(url, storage, print)
    assert typed("forget", KEY.study, "--yes").returncode == 0
    with open_store(url) as store:
        assert [summary.key for summary in store.studies()] == [OTHER]
        assert sorted(store.done()) == sorted([SHARED, STRANGER.trial_id])
    after = tables(url)
    rebuild_store(url, storage, print)
    assert tables(url) == after


def test_unknown_names_get_the_nearest(typed: Typed) -> None:
    for words, sign in (
        (("forget", "gss_gird"), "did you mean gss_grid?"),
        (("forget", "0123abcd"), "no study"),
        (("forget", ""), "no study"),
        (("forget", "\udcff"), "no study"),
        (("export", "gss_gird", "x"), "gss_grid"),
    ):
        answer = typed(*words)
        assert (answer.returncode, sign in answer.stderr) == (2, True), answer.stderr
        assert answer.stderr.count("\n") == 1


def test_bucket_forgets_and_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with object_store(tmp_path / "s3") as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        address, url = f"s3://{server.bucket}/kept", f"sqlite:///{tmp_path}/store.db"
        fill(url, storage_at(address))
        assert sweep("import", address, "--storage", tmp_path / "here").returncode == 0
        assert tables(f"sqlite:///{tmp_path}/here/results.db") == tables(url)
        words = ("--storage", address, "--store", tmp_path / "store.db")
        answer = sweep("status", "--sizes", "--format", "csv", *words)
        listed = server.client.list_objects_v2(Bucket=server.bucket)["Contents"]
        size = sum(item["Size"] for item in listed if "/trials/" in item["Key"])
        assert answer.stdout.splitlines()[-1].endswith(f",{size}")
        assert sweep("forget", KEY.study, "--yes", *words).returncode == 0
        listed = server.client.list_objects_v2(Bucket=server.bucket)["Contents"]
        trials = {Path(item["Key"]).parent.name for item in listed if "/trials/" in item["Key"]}
        assert trials == {SHARED, STRANGER.trial_id}
        assert not [item for item in listed if KEY.variant in item["Key"]]
