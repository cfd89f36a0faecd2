from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.support.command import results_table, sweep
from tests.support.one_ray import without_ray
from tests.support.smoke_trials import smoke_plan, train_here

STUDY = """from search_spaces.awd_lstm import awd_lstm
from search_spaces.study import Study
from trainables.config import GssConfig

def trials(corpus):
    for k in (1.5, 2.0, 2.5):
        yield awd_lstm(corpus, GssConfig(c=0.0, k=k), seed=1)

STUDY = Study(name="tops", trials=trials, label=lambda config: f"k={config.output_layer.k}",
    measurements=MEASUREMENTS)
"""
SMOKE = ("--scale", "smoke", "--max-concurrent", "1", "--storage")
WORDS = ("perplexity@1", "top_k@1", "word_similarity@1")


def write_study(folder: Path, *measurements: str) -> Path:
    path = folder / "tops.py"
    path.write_text(STUDY.replace("MEASUREMENTS", repr(measurements)))
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    measured_at_once(write_study(folder, "perplexity@1"), folder / "results")
    return folder


def measured_at_once(study: Path, storage: Path) -> list[dict[str, str]]:
    train_here(storage, smoke_plan(study))
    with without_ray():
        answer = sweep(study, *SMOKE, storage)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return results_table(storage, "tops")


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> Path:
    return shutil.copytree(trained, tmp_path / "copy")


def test_trials_without_weights_stay_unmeasured(folder: Path) -> None:
    study, storage = write_study(folder, "perplexity@1", "top_k@1"), folder / "results"
    assert sweep("forget", "tops", "--weights", "--yes", "--storage", storage).returncode == 0
    with without_ray():
        answer = sweep(study, *SMOKE, storage)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "3 of them without a measurement, for which no weights are kept" in answer.stdout
    assert "0 to run" in answer.stdout and "to be measured" not in answer.stdout


@pytest.mark.usefixtures("one_ray")
def test_missing_measurements_are_added_once(folder: Path) -> None:
    study, storage = (
        write_study(folder, "perplexity@1", "top_k@1", "spectrum@1"),
        folder / "results",
    )
    weights = {
        path: path.stat().st_mtime_ns for path in storage.glob("trials/*/*/kept.safetensors")
    }
    before = shutil.copy(storage / "results.db", folder / "before.db")
    ids = [row["trial_id"] for row in results_table(storage, "tops")]
    lost, damaged = (next(storage.glob(f"trials/*/{trial_id}")) for trial_id in ids[:2])
    shutil.copytree(damaged, folder / "sound")
    lost.rename(folder / "lost")
    (damaged / "kept.safetensors").write_bytes(b"nothing")
    answer = sweep(study, *SMOKE, storage)
    assert answer.returncode == 1, answer.stdout + answer.stderr
    assert "0 to run, 3 already done, 3 of them to be measured again for: top_k@1" in answer.stdout
    assert f"not measured: k=1.5: {lost}" in answer.stdout
    assert "not measured: k=2.0: " in answer.stdout and "not measured: k=2.5" not in answer.stdout
    rows = results_table(storage, "tops")
    assert [bool(row["top_k even 1"]) for row in rows] == [False, False, True]

    for path, sound in ((lost, folder / "lost"), (damaged, folder / "sound")):
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(sound, path)
    answer = sweep(study, *SMOKE, storage)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "2 of them to be measured again" in answer.stdout and "[2/2]" in answer.stdout
    assert {path: path.stat().st_mtime_ns for path in weights} == weights, "trained again"
    table = results_table(storage, "tops")
    assert table == measured_at_once(study, folder / "at once")

    # The store is older than the files, as if a driver died between writing file and store.
    for path in storage.glob("results.db*"):
        path.unlink()
    shutil.copy(before, storage / "results.db")
    with without_ray():
        answer = sweep(study, *SMOKE, storage)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "Recorded 6 measurements that an earlier run had left as files." in answer.stdout
    assert results_table(storage, "tops") == table


@pytest.mark.usefixtures("one_ray")
def test_contexts_and_benchmarks_make_variants(folder: Path) -> None:
    study, storage = write_study(folder, *WORDS), folder / "results"
    contexts, benchmarks = folder / "mine.json", folder / "sims"
    contexts.write_text('[{"last_token_index": 300, "group": "mine", "number": 7}]')
    benchmarks.mkdir()
    (benchmarks / "EN-SMALL.txt").write_text("the a 3\nis are 9\nif or 1\nin of 2\n")
    options = ("--contexts", contexts, "--benchmarks", benchmarks)
    answer = sweep(study, *SMOKE, storage, *options)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "0 to run, 3 already done, 3 of them to be measured again for: top_k-" in answer.stdout
    printed = sweep("results", "tops", "--storage", storage, "--format", "json").stdout
    rows = json.loads(printed)["trials"]
    assert json.loads(next(value for name, value in rows[0].items() if name.endswith(" mine 7")))
    assert any(-1 <= value <= 1 for name, value in rows[0].items() if name.endswith(" SMALL"))


@pytest.mark.parametrize(
    ("option", "content", "key_words"),
    [
        ("--contexts", '[{"last_token_index": 9999999}]', "last_token_index"),
        ("--benchmarks", "", "Check the path"),
    ],
)
def test_unsuitable_file_is_refused(
    folder: Path, option: str, content: str, key_words: str
) -> None:
    contexts, benchmarks = folder / "given.json", folder / "sims"
    contexts.write_text(content or '[{"last_token_index": 5}]')
    benchmarks.mkdir()
    if option == "--contexts":
        (benchmarks / "A.txt").write_text("the a 3\n")
    study = write_study(folder, *WORDS)
    options = ("--contexts", contexts, "--benchmarks", benchmarks)
    with without_ray():
        answer = sweep(study, *SMOKE, folder / "results", *options)
    assert answer.returncode == 2 and key_words in answer.stderr
