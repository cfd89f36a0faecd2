from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.support.command import results_table, sweep
from tests.support.json_page import check

STUDY = """import random
import sqlite3
from pathlib import Path
from search_spaces.study import Study
from trainables.config import Trainable

class Guess(Trainable):
    skill: float = 0.0
    spread: float = 1.0
    notes: dict[str, int] = {{}}

    def train(self, trial):
        with Path({log!r}).open("a") as file:
            print(self.skill, trial.seed, file=file)
        if self.skill == 9 and trial.seed == 1 and Path({log!r} + ".unlucky").exists():
            raise ValueError("no luck")
        if trial.seed == 2 and Path({log!r} + ".planned").exists():  # a run registers other trials
            with sqlite3.connect({store!r}) as store:
                store.execute("DELETE FROM study_trial WHERE name LIKE 'skill=0 %'")
        common, own = random.Random(trial.seed), random.Random(f"{{self.skill}} {{trial.seed}}")
        return {{"score": 10 * common.random() + self.skill + self.spread * own.random()}}

STUDY = Study(
    name="guess", trials=lambda: [Guess(skill=s) for s in (0.0, 0.1, 3.0, 9.0)], metric="score",
    mode="max", seeds=2,
)
"""


class Compared:
    def __init__(self, folder: Path) -> None:
        self.study, self.log, self.storage = folder / "guess.py", folder / "log", folder / "results"
        store = str(self.storage / "results.db")
        self.study.write_text(STUDY.format(log=str(self.log), store=store))

    def __call__(self, *words: str) -> CompletedProcess[str]:
        return sweep("compare", self.study, *words, "--storage", self.storage)

    def trained(self) -> int:
        return len(self.log.read_text().splitlines())


@pytest.fixture
def compared(tmp_path: Path, one_ray: Any) -> Compared:
    del one_ray
    return Compared(tmp_path)


def document(answer: CompletedProcess[str]) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(answer.stdout)
    return content


def test_verdicts_have_exit_statuses(compared: Compared) -> None:
    better = compared("skill=3", "skill=0", "--seeds", "5", "--format", "json")
    assert better.returncode == 0, better.stderr
    content = check(better.stdout, "compare")
    assert (content["verdict"], content["pairs"], content["better"]) == ("a_better", 5, "higher")
    assert 2 < content["interval"][0] < content["difference"] < content["interval"][1] < 4
    assert compared.trained() == 10
    worse = compared("skill=0", "skill=3", "--seeds", "5")
    assert worse.returncode == 1 and worse.stdout.startswith("skill=3 is better")
    assert compared.trained() == 10, "finished work is not repeated"
    words = ("skill=0", "skill=0.1", "--seeds", "5")
    unsettled = compared(*words)
    assert unsettled.returncode == 4 and "No difference" in unsettled.stdout
    assert compared(*words, "--margin", "5").returncode == 3


def test_comparison_keeps_the_studys_trials(compared: Compared) -> None:
    assert sweep("run", compared.study, "--storage", compared.storage).returncode == 0
    names = {row["name"] for row in results_table(compared.storage, "guess")}
    assert compared("skill=3", "skill=0", "--seeds", "4").returncode == 0
    later_names = {row["name"] for row in results_table(compared.storage, "guess")}
    assert names < later_names and len(later_names) == len(names) + 4
    assert compared.trained() == 8 + 4
    # Other words for a setting of the study do not rename it.
    assert compared("skill=3", "skill=0 spread=1", "--seeds", "5").returncode == 0
    added = {row["name"] for row in results_table(compared.storage, "guess")} - later_names
    assert added == {"skill=3 seed=5", "skill=0 seed=5"}


def test_sequential_comparison_stops_early(compared: Compared) -> None:
    answer = compared("skill=3", "skill=0", "--format", "json")
    assert answer.returncode == 0, answer.stderr
    seeds = document(answer)["seeds"]
    assert seeds < 20 and compared.trained() == 2 * seeds
    again = compared("skill=3", "skill=0", "--until-settled", "40", "--format", "json")
    assert document(again) == document(answer) and compared.trained() == 2 * seeds


def test_side_can_change_settings(compared: Compared) -> None:
    side = 'skill=0 spread=5 notes={"a": 1}'
    answer = compared("skill=0", side, "--seeds", "5", "--format", "json")
    content = document(answer)
    assert content["mean_b"] > content["mean_a"] + 1 and content["verdict"] == "b_better"


def test_next_command_settles(compared: Compared) -> None:
    words = ("skill=0", "skill=0.1", "--margin", "0.01", "--format", "json")
    first = document(compared(*words, "--seeds", "5"))
    assert first["verdict"] == "no_difference_shown"
    command = first["next_command"]
    assert "--until-settled" in command and "--seeds" not in command
    assert command.count("--margin 0.01") == 1


def test_failed_seed_gives_no_pair(compared: Compared) -> None:
    words, unlucky = ("skill=9", "skill=0", "--seeds", "3"), compared.log.with_suffix(".unlucky")
    unlucky.touch()
    answer = compared(*words)
    assert answer.returncode == 0
    assert "2 pairs" in answer.stdout and "1 seed gave no pair" in answer.stdout
    unlucky.unlink()
    assert "3 pairs" in compared(*words, "--retry").stdout


def test_lost_seeds_do_not_change_the_looks(compared: Compared) -> None:
    compared.log.with_suffix(".unlucky").touch()
    words = ("skill=9", "skill=0", "--until-settled", "30", "--format", "json")
    first = document(compared(*words))
    assert first["verdict"] == "a_better" and first["pairs"] == first["seeds"] - 1
    trained = compared.trained()
    assert document(compared(*words)) == first and compared.trained() == trained


def test_other_plan_leaves_pairs(compared: Compared) -> None:
    compared.log.with_suffix(".planned").touch()
    answer = compared("skill=3", "skill=0", "--seeds", "5", "--format", "json")
    assert document(answer)["pairs"] == 5 and answer.returncode == 0


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (("skill=1", "skill=0"), "no such setting"),
        (("skill=0", "skill=0"), "the same settings"),
        (("skill=3", "skill=0", "--seeds", "1"), "take 2"),
        (("skill=3", "skill=0", "--until-settled", "1001"), "take 2"),
        (("skill=3", "skill=0", "--margin", "inf"), "finite"),
        (("skill=3", "skill=0 seed=7"), "no seed"),
        (("skill=3", "skill=0", "--seeds", "5", "--until-settled", "9"), "Leave one"),
        (("skill=3", "skill=0", "--metric", "height"), "such as score"),
        (("skill=3", "skill=0 taste=2"), "taste"),
    ],
)
def test_bad_comparison_is_refused(compared: Compared, words: tuple[str, ...], key: str) -> None:
    answer = compared(*words)
    assert answer.returncode == 2 and key in answer.stderr
    assert answer.stderr.count("\n") == 1 and not compared.log.exists()


@pytest.mark.parametrize("study", ["fair_capacity", "all"])
def test_unsuitable_study_is_refused(study: str, tmp_path: Path) -> None:
    answer = sweep("compare", study, "a", "b", "--storage", tmp_path)
    assert answer.returncode == 2 and answer.stderr.startswith("error: compare:")


@pytest.mark.parametrize(
    ("study", "metric"), [("layer_gates", "test_perplexity"), ("seeds", "tset_perplexity")]
)
def test_metric_is_checked_before_training(study: str, metric: str, tmp_path: Path) -> None:
    words = ("regions: dense", "wide: dense", "--metric", metric, "--storage", tmp_path / "new")
    answer = sweep("compare", study, *words)
    assert answer.returncode == 2 and repr(metric) in answer.stderr
    assert not (tmp_path / "new").exists()
