"""Measurements that a study got later, as a user meets them: the same command, nothing trained,
nothing done twice."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.support.command import results_table, sweep
from tests.support.one_ray import start_ray, without_ray

STUDY = """from search_spaces.awd_lstm import awd_lstm
from search_spaces.study import Study
from trainables.config import GssConfig

def trials(corpus):
    for k in (1.5, 2.0, 2.5):
        yield awd_lstm(corpus, GssConfig(c=0.0, k=k), seed=1)

def label(config):
    return f"k={config.output_layer.k}"

STUDY = Study(name="tops", trials=trials, measurements=(MEASUREMENTS), label=label)
"""
pytestmark = pytest.mark.usefixtures("one_ray")
SMOKE = ("--scale", "smoke", "--max-concurrent", "1", "--storage")
TRAINED = '"perplexity@1",'
LATER = '"perplexity@1", "top_k@1", "spectrum@1"'


def write_study(folder: Path, measurements: str) -> Path:
    path = folder / "tops.py"
    path.write_text(STUDY.replace("MEASUREMENTS", measurements))
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the storage of a study that measured perplexity alone."""
    start_ray()
    folder = tmp_path_factory.mktemp("trained")
    answer = sweep(write_study(folder, TRAINED), *SMOKE, folder / "results")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return folder


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(trained, tmp_path / "copy"))


def test_the_same_command_takes_what_is_lacking_once_and_it_equals_that_of_the_trials_end(
    folder: Path,
) -> None:
    """A trial whose weights are lost or damaged is named, the others go on; once they are back it
    is measured."""
    study, storage = write_study(folder, LATER), folder / "results"
    before, lost_weights = folder / "before.db", folder / "lost"
    shutil.copy(storage / "results.db", before)
    kept = {path: path.stat().st_mtime_ns for path in storage.glob("trials/*/*/kept.safetensors")}
    lost, damaged = (
        next(storage.glob(f"trials/*/{row['trial_id']}"))
        for row in results_table(storage, "tops")[:2]
    )
    shutil.copytree(damaged, folder / "sound")
    lost.rename(lost_weights)
    (damaged / "kept.safetensors").write_bytes(b"nothing")
    answer = sweep(study, *SMOKE, storage)
    assert answer.returncode == 1, answer.stdout + answer.stderr
    assert (
        "3 trials: 0 to run, 3 already done, 3 of them to be measured again for: top_k@1, spec"
        in answer.stdout
    )
    cause = f"the weights that the trial kept are needed, and {lost}/kept.safetensors is missing"
    assert f"not measured: k=1.5: {cause}" in answer.stdout
    assert "not measured: k=2.0: " in answer.stdout
    assert "not measured: k=2.5" not in answer.stdout
    rows = results_table(storage, "tops")
    assert [row["state"] for row in rows] == ["done"] * 3
    assert [bool(row["top_k even 1"]) for row in rows] == [False, False, True]

    for path, sound in ((lost, lost_weights), (damaged, folder / "sound")):
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(sound, path)
    answer = sweep(study, *SMOKE, storage)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "2 of them to be measured again" in answer.stdout
    assert "[2/2]" in answer.stdout
    assert len(kept) == 3
    assert {path: path.stat().st_mtime_ns for path in kept} == kept, "a trial was trained again"
    table = results_table(storage, "tops")
    assert json.loads(table[0]["top_k even 18"])["top"]
    at_once = folder / "at once"
    assert sweep(study, *SMOKE, at_once).returncode == 0
    assert table == results_table(at_once, "tops")
    with without_ray():
        assert "3 trials: 0 to run, 3 already done." in sweep(study, *SMOKE, storage).stdout

    # As after a driver that died between the worker's file and the store: the files of a run, the
    # store before it.
    for name in ("results.db-wal", "results.db-shm"):
        (storage / name).unlink(missing_ok=True)
    shutil.copy(before, storage / "results.db")
    with without_ray():
        answer = sweep(study, *SMOKE, storage)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "Recorded 6 measurements that an earlier run had left as files." in answer.stdout
    assert results_table(storage, "tops") == table
    assert sweep("store", "check", "--storage", storage).stdout.startswith("The store is sound.")


def test_contexts_and_benchmarks_of_ones_own_make_variants(folder: Path) -> None:
    study, storage = (
        write_study(folder, '"perplexity@1", "top_k@1", "word_similarity@1"'),
        folder / "results",
    )
    contexts, benchmarks = folder / "mine.json", folder / "sims"
    contexts.write_text('[{"last_token_index": 300, "group": "mine", "number": 7}]')
    benchmarks.mkdir()
    (benchmarks / "EN-SMALL.txt").write_text("the a 3\nis are 9\nif or 1\nin of 2\n")
    own = ("--contexts", contexts, "--benchmarks", benchmarks)
    answer = sweep(study, *SMOKE, storage, *own)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "0 to run, 3 already done, 3 of them to be measured again for: top_k-" in answer.stdout
    status = json.loads(sweep("status", "tops", "--storage", storage, "--format", "json").stdout)
    (overrides,) = (json.loads(row["overrides"]) for row in status if row["overrides"])
    name, tag = overrides["contexts"].split()
    assert (name, overrides["benchmarks"].split()[0]) == ("mine.json", "sims")
    chosen = (
        "--set",
        f"contexts={name} {tag}",
        "--set",
        f"benchmarks={overrides['benchmarks']}",
    )
    shown = sweep("results", "tops", "--storage", storage, "--format", "json", *chosen)
    assert shown.returncode == 0, shown.stderr
    first = json.loads(shown.stdout)[0]
    assert json.loads(first[f"top_k-{tag} mine 7"])["rank"] >= 1
    similarity = f"similarity-{overrides['benchmarks'].split()[1]}"
    assert -1 <= first[f"{similarity} SMALL"] <= 1
    assert first[f"{similarity} pairs SMALL"] == 4


@pytest.mark.parametrize(
    ("option", "content", "sentence"),
    [
        ("--contexts", '[{"last_token_index": 9999999}]', "its last_token_index is at most"),
        (
            "--contexts",
            '[{"last_token_index": 5, "next_token": "xyzzy"}]',
            "says that 'xyzzy' follows token 5",
        ),
        ("--contexts", "[]", "empty list"),
        ("--benchmarks", "", "has none: check the path"),
    ],
)
def test_what_does_not_fit_is_one_sentence_before_anything_is_measured(
    folder: Path, option: str, content: str, sentence: str
) -> None:
    study = write_study(folder, '"perplexity@1", "top_k@1", "word_similarity@1"')
    given = folder / "given.json"
    given.write_text(content)
    benchmarks = folder / "sims"
    benchmarks.mkdir()
    (benchmarks / "A.txt").write_text("the a 3\n")
    own = (
        ("--benchmarks", folder / "results" / "trials")
        if option == "--benchmarks"
        else ("--contexts", given)
    )
    # The other one is given too, so that nothing has to be downloaded.
    other = () if option == "--benchmarks" else ("--benchmarks", benchmarks)
    with without_ray():
        answer = sweep(study, *SMOKE, folder / "results", *own, *other)
    assert answer.returncode == 2, answer.stdout
    assert sentence in answer.stderr
