from __future__ import annotations

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orchestrator.store import open_store
from tests.support.command import results_table, sweep, sweep_process, wait_for
from tests.support.one_ray import without_ray
from tests.support.smoke_trials import smoke_plan
from tests.support.store_rows import RUN, outcome
from trainables.trial_folder import trial_directory

SMOKE = ("gss_grid", "--scale", "smoke", "--max-concurrent", "1", "--storage")
TROUBLE = """from search_spaces.awd_lstm import awd_lstm
from search_spaces.study import Study
from trainables.config import GssConfig

def trials(corpus):
    good = awd_lstm(corpus, GssConfig(c=0, k=2))
    for seed, rate in ((1, 0.02), (2, 1e12), (3, 0.02), (4, 0.02)):
        training = good.training.model_copy(update={"learning_rate": rate})
        yield good.model_copy(update={"seed": seed, "training": training})

STUDY = Study(name="trouble", trials=trials, label=lambda config: f"seed {config.seed}")
"""


def trial_ids(*arguments: str | Path) -> dict[str, str]:
    plan = json.loads(sweep(*arguments, "--dry-run", "--format", "json").stdout)["trials"]
    return {trial["name"]: trial["trial_id"] for trial in plan}


def test_second_run_trains_nothing(copied: Path) -> None:
    before = results_table(copied)
    assert all(float(row["test_perplexity"]) > 1 and int(row["press_rank"]) >= 1 for row in before)
    [report] = copied.glob("reports/*/report.html")
    report.unlink()
    with without_ray():
        answer = sweep(*SMOKE, copied)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "0 to run, 4 already done" in answer.stdout and f"Report: {report}" in answer.stdout
    assert report.is_file() and results_table(copied) == before


@pytest.mark.usefixtures("one_ray")
def test_failed_trials_are_retried(tmp_path: Path) -> None:
    study, storage = tmp_path / "trouble.py", tmp_path / "results"
    study.write_text(TROUBLE)
    typed = (study, "--scale", "smoke", "--storage", storage, "--max-concurrent", "1",
             "--set", "training.epochs=1")  # fmt: skip
    ids = trial_ids(*typed)
    in_the_way = trial_directory(storage, ids["seed 3"])
    in_the_way.parent.mkdir(parents=True)
    in_the_way.write_text("a file in place of the trial's folder")
    with ThreadPoolExecutor(1) as threads:
        kills = threads.submit(kill_holders, trial_directory(storage, ids["seed 4"]) / "lock", 2)
        answer = sweep(*typed)
        kills.result()
    assert answer.returncode == 1 and "Traceback" not in answer.stdout + answer.stderr
    rows = {row["name"]: row for row in results_table(storage, str(study))}
    for name, state, cause in (
        ("seed 1", "done", ""),
        ("seed 2", "diverged", "nats per token"),
        ("seed 3", "failed", "FileExistsError"),
        ("seed 4", "failed", "its process died"),
    ):
        assert rows[name]["state"] == state and cause in rows[name]["cause"], rows[name]
        assert rows[name]["cause"] in answer.stdout
    assert f"python sweep.py retry {study}" in answer.stdout and "other settings" in answer.stdout
    with without_ray():
        again = sweep(*typed)
    assert again.returncode == 1 and "0 to run" in again.stdout
    in_the_way.unlink()
    retried = sweep("retry", *typed)
    assert retried.returncode == 1 and "3 to run, 1 already done" in retried.stdout
    done = dict.fromkeys(("seed 1", "seed 3", "seed 4"), "done")
    states = {row["name"]: row["state"] for row in results_table(storage, "trouble")}
    assert states == done | {"seed 2": "diverged"}


def kill_holders(lock: Path, times: int) -> None:
    killed: set[int] = set()

    def kill_another() -> bool:
        inode = f":{lock.stat().st_ino}" if lock.exists() else "none"
        for words in map(str.split, Path("/proc/locks").read_text().splitlines()):
            if words[1] != "->" and words[5].endswith(inode) and int(words[4]) not in killed:
                os.kill(int(words[4]), signal.SIGKILL)
                killed.add(int(words[4]))
        return len(killed) == times

    wait_for(kill_another, timeout_s=120, event=f"{times} processes that hold a lock")


@pytest.mark.usefixtures("one_ray")
def test_retry_runs_only_failed_trials(copied: Path, tmp_path: Path) -> None:
    retry = sweep("retry", "gss_grid", "--scale", "quick", "--storage", copied)
    assert retry.returncode == 0 and "nothing to retry" in retry.stdout
    assert sweep("retry", *SMOKE, tmp_path / "empty").returncode == 2
    plan = smoke_plan("gss_grid", settings={"training.epochs": (1,)})
    with open_store(f"sqlite:///{copied}/results.db") as store:
        store.register(plan.key, plan.trials)
        failed = outcome(plan.trials[1].trial_id, state="failed")
        store.record(failed, run_id=store.begin_run(RUN), spectrum=None)
    answer = sweep("retry", *SMOKE, copied, "--set", "training.epochs=1")
    assert answer.returncode == 1 and "1 to run" in answer.stdout
    variant = results_table(copied, "gss_grid", "--set", "training.epochs=1")
    assert [row["state"] for row in variant] == ["planned", "done", "planned", "planned"]
    assert variant[1]["epochs"] == "1"
    plain = sweep("results", "gss_grid", "--storage", copied, "--format", "json")
    rows = json.loads(plain.stdout)["trials"]
    assert {row["epochs"] for row in rows} == {2} and "--set" in plain.stderr


@pytest.mark.parametrize("harm", ["deleted", "truncated", "an older copy"])
def test_lost_store_rebuilds_without_training(copied: Path, harm: str) -> None:
    before, path = results_table(copied), copied / "results.db"
    content = path.read_bytes()
    path.unlink()
    if harm == "an older copy":
        with open_store(f"sqlite:///{path}") as store:
            plan = smoke_plan("gss_grid")
            store.register(plan.key, plan.trials)
    else:
        if harm == "truncated":
            path.write_bytes(content[:9999])
        answer = sweep("results", "gss_grid", "--storage", copied)
        assert answer.returncode == 2 and "sweep.py store rebuild" in answer.stderr
    answer = sweep("store", "rebuild", "--storage", copied)
    assert answer.returncode == 0 and "1 study, 4 trials and 4 results" in answer.stdout
    assert len([*copied.glob("results.db.before-*")]) == (harm != "deleted")
    assert results_table(copied) == before
    with without_ray():
        answer = sweep(*SMOKE, copied)
    assert answer.returncode == 0 and "4 already done" in answer.stdout
    assert sweep("store", "check", "--storage", copied).returncode == 0


def test_missing_cluster_error_is_one_sentence(tmp_path: Path) -> None:
    answer = sweep_process(*SMOKE, tmp_path, "--address", "127.0.0.1:1")
    assert answer.returncode == 2
    [sentence] = answer.stderr.splitlines()
    assert sentence.startswith("error: ") and "127.0.0.1:1" in sentence
