from __future__ import annotations

import hashlib
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from orchestrator import epochs, results, spectra
from tests.support.command import results_table, sweep
from tests.support.small_disk import small_disk
from trainables.trial_folder import sealed, unsealed

Change = Callable[[Path], None]


@pytest.fixture(scope="module")
def exported(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "appendix"
    answer = sweep("export", "gss_grid", folder, "--weights", "--storage", finished)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return folder


@pytest.fixture
def archive(exported: Path, tmp_path: Path) -> Path:
    return shutil.copytree(exported, tmp_path / "archive")


def sums(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def imported(source: Path, storage: Path) -> tuple[int, str]:
    answer = sweep("import", source, "--storage", storage)
    assert "Traceback" not in answer.stderr
    return answer.returncode, answer.stdout + answer.stderr


def test_imported_results_equal_the_original(finished: Path, archive: Path, tmp_path: Path) -> None:
    for number, source in enumerate((archive, finished, finished / "results.db")):
        storage = tmp_path / str(number)
        assert imported(source, storage)[0] == 0
        assert results_table(storage) == results_table(finished)
        for path in finished.glob("trials/*/*/[kr]*"):
            assert (storage / path.relative_to(finished)).read_bytes() == path.read_bytes()
        assert sweep("store", "check", "--storage", storage).returncode == 0
        before = sums(storage / "trials")
        assert imported(source, storage)[0] == 0
        assert sums(storage / "trials") == before


def test_export_has_every_number(finished: Path, exported: Path) -> None:
    [report] = exported.glob("reports/*/")
    trials = results("gss_grid", storage=finished)
    for table in (pd.read_csv(report / "trials.csv"), pd.read_parquet(report / "trials.parquet")):
        assert list(table["trial_id"]) == list(trials["trial_id"])
        assert list(table["test_perplexity"]) == list(trials["test_perplexity"])
    curves = pd.read_parquet(report / "epochs.parquet")
    assert sorted(curves["valid_loss"]) == sorted(
        epochs("gss_grid", storage=finished)["valid_loss"]
    )
    values = pd.read_parquet(report / "spectra.parquet")["singular_values"]
    stored = spectra("gss_grid", storage=finished)["singular_value"]
    assert sorted(np.concatenate(list(values))) == sorted(stored)
    assert {path.suffix for path in report.iterdir()} >= {".svg", ".pdf", ".html", ".csv"}
    lines = (exported / "SHA256SUMS").read_text().splitlines()
    written = {name: checksum for checksum, name in (line.split("  ") for line in lines)}
    assert written == {name: one for name, one in sums(exported).items() if name != "SHA256SUMS"}


def test_damaged_bytes_are_named(archive: Path, tmp_path: Path) -> None:
    chance = random.Random(7)
    paths = sorted(path for path in archive.glob("trials/*/*/*") if path.name != "lock")
    assert {path.name for path in paths} > {"result.json", "spectrum.npy", "kept.safetensors"}
    for number, path in enumerate(paths):
        content = path.read_bytes()
        position = chance.randrange(len(content))
        damaged = bytearray(content)
        damaged[position] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        storage = tmp_path / f"storage{number}"
        status, text = imported(archive, storage)
        assert (status, str(path) in text.replace("\n", "")) == (2, True), (position, text)
        states = [row["state"] for row in results_table(storage)]
        is_whole = path.name == "kept.safetensors"
        assert sorted(states) == ["done"] * (4 if is_whole else 3) + ["planned"] * (not is_whole)
        path.write_bytes(content)


def test_existing_results_stay(archive: Path, copied: Path) -> None:
    """The archive has another result of one trial, and everything that is missing here."""
    first, second, third, _ = sorted(copied.glob("trials/*/*"))
    other = archive / first.relative_to(copied) / "result.json"
    other.write_bytes(sealed(unsealed(other).decode().replace('"host": "', '"host": "not ')))
    shutil.rmtree(second)
    (third / "kept.safetensors").unlink()
    before, rows = sums(first), results_table(copied)
    status, text = imported(archive, copied)
    assert status == 0 and f"{first.name[:12]} has another result" in text
    assert sums(first) == before and results_table(copied) == rows
    assert (second / "result.json").exists() and (third / "kept.safetensors").exists()


def into_missing(folder: Path) -> None:
    shutil.rmtree(folder)


def into_nothing(folder: Path) -> None:
    for name in ("trials", "studies"):
        shutil.rmtree(folder / name)


@pytest.mark.parametrize("change", [into_missing, into_nothing])
def test_useless_folder_is_refused(archive: Path, tmp_path: Path, change: Change) -> None:
    change(archive)
    status, text = imported(archive, tmp_path / "storage")
    assert status == 2 and str(archive) in text and text.count("\n") == 1
    assert not (tmp_path / "storage").exists()


def test_links_are_not_followed(archive: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    folder = min(archive.glob("trials/*/*"))
    for name in ("result.json", "spectrum.npy", "kept.safetensors"):
        (folder / name).rename(secret)
        (folder / name).symlink_to(secret)
        imported(archive, tmp_path / name)
        assert not (tmp_path / name / (folder / name).relative_to(archive)).exists()
        secret.rename(folder / name)


def test_export_needs_an_empty_folder(finished: Path, archive: Path) -> None:
    before = sums(archive)
    for folder in (archive, archive / "README.md"):
        answer = sweep("export", "gss_grid", folder, "--storage", finished)
        assert (answer.returncode, str(folder) in answer.stderr) == (2, True)
        assert answer.stderr.count("\n") == 1
    assert sums(archive) == before


def test_full_disk_loses_nothing(finished: Path, archive: Path, tmp_path: Path) -> None:
    before = sums(archive)
    with small_disk(tmp_path / "disk", kib=256) as disk:
        answer = sweep("export", "gss_grid", disk / "x", "--weights", "--storage", finished)
        assert (answer.returncode, "full" in answer.stderr) == (2, True), answer.stderr
        shutil.rmtree(disk / "x")
        status, text = imported(archive, disk / "y")
        assert (status, "full" in text) == (2, True), text
    assert sums(archive) == before


def test_best_setting_keeps_its_weights(copied: Path) -> None:
    words = ("gss_grid", "--scale", "smoke", "--storage", copied, "--keep-weights")
    rows = results_table(copied)
    best = min(rows, key=lambda row: float(row["test_perplexity"]))["trial_id"]
    for choice, left in (("best", 1), ("none", 0)):
        answer = sweep(*words, choice)
        assert answer.returncode == 0, answer.stdout + answer.stderr
        names = [path.parent.name for path in copied.glob("trials/*/*/kept.safetensors")]
        assert names == [best][:left]
        assert results_table(copied) == rows
