"""Real SIGKILLs of a tuning's driver, real Ray: the search goes on as if nothing had happened."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from orchestrator.store.opening import open_store
from tests.support.command import ROOT, environment
from tests.support.scripted_tuning import KEY, plan


def start(folder: Path, workers: int) -> subprocess.Popen[str]:
    folder.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.tuning_program", str(folder), str(workers)],
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(folder: Path, workers: int) -> None:
    process = start(folder, workers)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors


def kill_at_random_moments(folder: Path, workers: int, times: int) -> int:
    """Each a little after a further trial was taken up; returns how many of the drivers had not ended before."""
    dice = random.Random()
    killed = 0
    for _ in range(times):
        before = len(log(folder))
        process = start(folder, workers)
        while process.poll() is None and len(log(folder)) == before:
            time.sleep(0.02)
        time.sleep(dice.uniform(0.0, 0.6))
        killed += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.communicate()
    return killed


def log(folder: Path) -> list[str]:
    path = folder / "log.txt"
    return path.read_text().splitlines() if path.exists() else []


def table(folder: Path) -> list[tuple[str, str, str, list[float]]]:
    with open_store(f"sqlite:///{folder}/results.db") as store:
        return [
            (row.name, row.trial_id, row.state, [epoch.valid_loss for epoch in store.epochs(row.trial_id)])
            for row in store.trials(KEY)
        ]


@pytest.mark.timeout(600)
def test_killed_ten_times_one_worker_ends_with_the_trials_of_an_undisturbed_one(tmp_path: Path) -> None:
    finish(tmp_path / "undisturbed", 1)
    disturbed = tmp_path / "disturbed"
    assert kill_at_random_moments(disturbed, 1, times=10) >= 5
    finish(disturbed, 1)
    assert table(disturbed) == table(tmp_path / "undisturbed")
    assert "pruned" in {state for _, _, state, _ in table(disturbed)}
    ends = Counter(line.split()[1] for line in log(disturbed) if not line.startswith("start"))
    assert set(ends.values()) == {1}, "a trial was trained twice to its end"


def test_killed_three_times_two_workers_lose_repeat_and_leave_nothing(tmp_path: Path) -> None:
    assert kill_at_random_moments(tmp_path, 2, times=3) >= 2
    finish(tmp_path, 2)
    rows = table(tmp_path)
    assert len(rows) == plan(budget=4).total
    assert {state for _, _, state, _ in rows} <= {"done", "pruned"}
    stage2 = Counter(name.split()[0] for name, _, _, _ in rows if " stage2 " in name)
    assert stage2 == {"narrow": 4, "wide": 4}
    ends = Counter(line.split()[1] for line in log(tmp_path) if not line.startswith("start"))
    assert ends == Counter(trial_id for _, trial_id, _, _ in rows)
