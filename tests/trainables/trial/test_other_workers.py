from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from tests.support.program import metrics
from trainables.config import Command, Goal
from trainables.runtime import Runtime
from trainables.trial import run_trial
from trainables.trial_folder import BusyError, TrialFolder, TrialOutcome

CONFIG = Command(["sh", "-c", """echo '{{"loss": 2}}'"""])


def run(folder: Path, worker: str = "process 1 on here") -> TrialOutcome:
    runtime = Runtime(goal=Goal("loss", "min", ""), worker=worker)
    return run_trial(CONFIG, directory=folder, runtime=runtime)


def test_trial_that_just_ended_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hosts may share no locks, so a trial can end between a look and the fence."""
    take_over = TrialFolder.take_over

    def late(folder: TrialFolder, worker: str = "") -> None:
        monkeypatch.setattr(TrialFolder, "take_over", take_over)
        run(tmp_path, "process 2 on another host")
        take_over(folder, worker)

    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    monkeypatch.setattr(TrialFolder, "take_over", late)
    outcome = run(tmp_path)
    assert metrics(outcome) == {"loss": 2}
    assert (tmp_path / "log.txt").read_text().count("started") == 1
    assert not (tmp_path / "worker").exists()


def test_failure_elsewhere_is_final(tmp_path: Path) -> None:
    """Only a driver tries a failed trial again, because its user asked for it."""
    failed = TrialOutcome(trial_id=CONFIG.trial_id, state="failed", cause="no more ink")
    TrialFolder(tmp_path, CONFIG.trial_id).write_result(failed, None)
    with pytest.raises(BusyError, match="no more ink"):
        run(tmp_path)
    assert metrics(run(tmp_path, worker="")) == {"loss": 2}


@pytest.mark.parametrize(("holder", "other"), [("job 1 on a", ""), ("", "job 2 on b")])
def test_locked_folder_is_busy(tmp_path: Path, holder: str, other: str) -> None:
    """A driver and a worker do not wait for each other: both have other trials."""
    folder = TrialFolder(tmp_path, CONFIG.trial_id)
    with folder.locked():
        folder.take_over(holder)
        with pytest.raises(BusyError):
            run(tmp_path, other)
    assert metrics(run(tmp_path, other)) == {"loss": 2}
