from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support import tiny_trial
from tests.support.smoke_trials import FILES, names_in
from trainables.runtime import Runtime
from trainables.trial import trial_run as trial
from trainables.trial_folder import (
    DamagedFileError,
    Epoch,
    SupersededError,
    TrialFolder,
    environment,
)

VALUES = np.array([3.0, 1.0])


@contextlib.contextmanager
def unlocked(folder: TrialFolder, **_: object) -> Iterator[None]:
    """Simulate a file system without locks, or one that released the lock of a lost machine."""
    assert folder.path.is_dir()
    yield


def test_later_worker_owns_the_folder(tmp_path: Path) -> None:
    first, second = TrialFolder(tmp_path, "a"), TrialFolder(tmp_path, "a")
    first.take_over()
    first.check_fence()
    second.take_over()
    with pytest.raises(SupersededError):
        first.check_fence()
    second.check_fence()
    with first.fence.renewed():
        pass
    second.check_fence()
    with second.fence.renewed():
        pass
    assert list(tmp_path.iterdir()) == []


def test_later_workers_result_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny_trial.trial(epochs=2)
    runtime = Runtime(checkpoint_every_s=0.0)
    monkeypatch.setattr(trial, "load", lambda *_, **__: tiny_trial.corpus())
    monkeypatch.setattr(TrialFolder, "locked", unlocked)
    texts: list[bytes] = []

    def run_on_elsewhere(_: Epoch) -> None:
        if not texts:
            assert trial.run_trial(config, directory=tmp_path, runtime=runtime).state == "done"
            texts.append((tmp_path / "result.json").read_bytes())

    with pytest.raises(SupersededError, match="another worker"):
        trial.run_trial(config, directory=tmp_path, runtime=runtime, on_epoch=run_on_elsewhere)
    assert (tmp_path / "result.json").read_bytes() == texts[0]
    assert names_in(tmp_path) == {*FILES} - {"lock"}


def test_measurement_is_read_as_written(tmp_path: Path) -> None:
    TrialFolder(tmp_path, "a").write_measurement("spectrum@2", ({"press_rank": 2}, VALUES))
    measurement = TrialFolder(tmp_path, "a").measurement("spectrum@2")
    assert measurement is not None and measurement.metrics == {"press_rank": 2}
    np.testing.assert_array_equal(measurement.singular_values, VALUES)
    assert TrialFolder(tmp_path, "a").measurement("top_k@1") is None
    with pytest.raises(DamagedFileError, match="another measurement"):
        TrialFolder(tmp_path, "b").measurement("spectrum@2")


def test_damaged_spectrum_is_measured_again(tmp_path: Path) -> None:
    notes: list[str] = []
    folder = TrialFolder(tmp_path, "a", notes.append)
    folder.write_measurement("spectrum@2", ({"press_rank": 2}, VALUES))
    [path] = tmp_path.glob("*.npy")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DamagedFileError, match=r"spectrum@2\.npy"):
        folder.measurement("spectrum@2")
    assert [folder.has_measurement("spectrum@2") for _ in range(2)] == [False, False]
    assert len(notes) == 1 and "measured again" in notes[0]


def test_code_version_outside_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "__file__", str(tmp_path / "environment.py"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.delenv("SWEEPS_CODE_VERSION", raising=False)
    assert environment.code_version.__wrapped__() == "unknown"
    monkeypatch.setenv("SWEEPS_CODE_VERSION", "0123456789ab")
    assert environment.code_version.__wrapped__() == "0123456789ab"
