"""A worker that was cut off, and whose trial runs on elsewhere, writes nothing into the trial's folder any more."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.plan.study_plan import make_plan, scale_named
from search_spaces.catalog import load_study
from trainables.config.experiments import PressNoiseConfig
from trainables.experiments import run_experiment
from trainables.runtime import Runtime
from trainables.trial import trial_run as trial
from trainables.trial_folder.fence import Fence, SupersededError
from trainables.trial_folder.outcome import EpochMetrics


@contextlib.contextmanager
def unlocked(directory: Path) -> Iterator[None]:
    """What a lock is worth on a file system that has none, or gave it back for a machine that was cut off."""
    assert directory.is_dir()
    yield


def test_the_later_worker_has_the_right_and_nobody_once_it_left(tmp_path: Path) -> None:
    first = Fence(tmp_path)
    first.check()
    second = Fence(tmp_path)
    with pytest.raises(SupersededError):
        first.check()
    second.check()
    second.leave()
    with pytest.raises(SupersededError):
        first.check()
    first.leave()
    assert list(tmp_path.iterdir()) == []


def test_of_two_workers_in_one_folder_the_later_ones_result_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_plan(load_study("gss_grid"), scale_named("smoke"), "pydocs", None, {}).trials[0].config
    runtime = Runtime(checkpoint_every_s=0.0)
    monkeypatch.setattr(trial, "locked", unlocked)
    texts: list[bytes] = []

    def run_on_elsewhere(_: EpochMetrics) -> None:
        """At the end of the first worker's first epoch, a second one takes the trial over and ends it."""
        if not texts:
            assert trial.run_trial(config, directory=tmp_path, runtime=runtime).state == "done"
            texts.append((tmp_path / "result.json").read_bytes())

    with pytest.raises(SupersededError, match="another worker has taken over"):
        trial.run_trial(config, directory=tmp_path, runtime=runtime, on_epoch=run_on_elsewhere)
    assert (tmp_path / "result.json").read_bytes() == texts[0]
    assert {path.name for path in tmp_path.iterdir()} == {"result.json", "spectrum.npy", "kept.safetensors"}


def test_an_experiment_that_was_taken_over_writes_nothing(tmp_path: Path) -> None:
    config = PressNoiseConfig(seed=0, size=30)
    fence = Fence(tmp_path)
    Fence(tmp_path)
    with pytest.raises(SupersededError):
        run_experiment(config, directory=tmp_path, runtime=Runtime(), fence=fence)
    assert not (tmp_path / "result.json").exists()
