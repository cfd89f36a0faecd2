from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from tests.kills.own_sweep import OwnSweep
from tests.kills.reliability import keep_round
from tests.kills.typed_sweep import SEED, Undisturbed, run_undisturbed
from tests.slurm.array_sweep import ArraySweep
from tests.support.command import sweep, wait_for
from tests.support.slurm import SlurmCluster

pytestmark = pytest.mark.timeout(0)
SHORT_LEASE = {"CHAOS_LEASE_S": "10"}


def test_disturbed_array_equals_a_run(cluster: SlurmCluster, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    with (
        OwnSweep(tmp_path / "undisturbed") as other,
        ArraySweep(tmp_path / "array", cluster) as array,
    ):
        typed = other.type()
        part, interruptions = array.disturb(
            ["kill", "cancel"], chance, ("--array", "2"), **SHORT_LEASE
        )
        assert typed.status(600) == 0, typed.text
        undisturbed = Undisturbed(storage=other.storage, table=other.table(), seconds=0)
        array.judge_array(part, undisturbed, interruptions)
    assert part.troubles == [], f"seed {SEED}"


@pytest.mark.chaos(0, 2)
def test_many_disturbances_keep_the_table(
    cluster: SlurmCluster, tmp_path: Path, rounds: int
) -> None:
    """The jobs of the first array stop after a minute, and are queued again."""
    chance, parts = random.Random(SEED), []
    with LongSweep(tmp_path / "undisturbed", cluster) as other:
        undisturbed = run_undisturbed(other)
    for number in range(rounds):
        events = ["kill"] * 10 + ["cancel"] * 3
        chance.shuffle(events)
        with LongSweep(tmp_path / str(number), cluster) as array:
            part, interruptions = array.disturb(
                events, chance, ("--array", "4"), "--time", "2", "--requeue"
            )
            array.judge_array(part, undisturbed, interruptions)
        print(part)
        parts.append(part)
        keep_round("A disturbed Slurm array of 40 trials", part)
    assert [part for part in parts if part.troubles] == [], f"seed {SEED}"


class LongSweep(ArraySweep):
    TRIALS = 40
    TEXT = OwnSweep.TEXT.replace("seeds=2", "seeds=10").replace(
        "pause_s: float = 0.2", "pause_s: float = 0.75"
    )


def test_running_jobs_are_shown(cluster: SlurmCluster, tmp_path: Path) -> None:
    with LongSweep(tmp_path, cluster) as array:
        job = array.submit("--array", "2")

        def nodes() -> set[str]:  # a node that begins its next trial is missing for a moment
            status = sweep("status", "--storage", array.storage)
            return set(re.findall(rf"run from job {job}_[12] on (one|two)", status.stdout))

        wait_for(lambda: array.results() >= 2, timeout_s=120, event="two results")
        wait_for(lambda: nodes() == {"one", "two"}, timeout_s=60, event="a trial on each node")
        report = sweep("report", array.study, "--storage", array.storage)
        assert report.returncode == 0, report.stderr
        assert re.search(r"\b([2-9]|[123]\d) of 40 trials are done", report.stdout)
        assert cluster.jobs(), "the jobs ended too early"
        cluster.cancel(job)
        cluster.wait_for_jobs(60)
        later = sweep("status", "--storage", array.storage)
        assert "job" not in later.stdout, later
