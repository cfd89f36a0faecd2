from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command import results_table, sweep
from tests.support.one_ray import without_ray

SCRIPT = """import argparse, json, os
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--seed", type=int)
options = parser.parse_args()
with open({log!r}, "a") as log:
    print(options.lr, options.seed, file=log)
for epoch in range(2):
    noise = (options.seed * 37 % 11 + epoch) * 0.002 * options.lr
    accuracy = 0.5 + 0.4 * (options.lr == 0.01) + noise
    print(json.dumps({{"epoch": epoch, "accuracy": accuracy}}))
print(json.dumps({{"accuracy": accuracy}}))
"""
COMMAND = (
    "command", "python train.py --lr {lr} --seed {seed}", "--files", "train.py",
    "--grid", "lr=0.1,0.01", "--metric", "accuracy", "--mode", "max", "--max-concurrent", "2",
)  # fmt: skip
EVENTS = ("--format", "jsonl")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_script(tmp_path)
    return tmp_path


def write_script(folder: Path, end: str = "") -> None:
    text = SCRIPT.format(log=str(folder / "log"))
    (folder / "train.py").write_text(text + end)


def runs(folder: Path) -> list[str]:
    return (folder / "log").read_text().splitlines()


@pytest.mark.usefixtures("one_ray")
def test_script_is_swept(folder: Path) -> None:
    answer = sweep(*COMMAND, "--seeds", "3")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert len(runs(folder)) == 6
    rows = results_table(folder / "results", "train")
    assert {row["name"] for row in rows} == {
        f"lr={rate} seed={seed}" for rate in (0.1, 0.01) for seed in (1, 2, 3)
    }
    assert all(float(row["accuracy"]) > 0.8 for row in rows if row["lr"] == "0.01")
    with without_ray():
        again = sweep(*COMMAND, "--seeds", "3")
    assert again.returncode == 0 and "0 to run, 6 already done" in again.stdout
    (folder / "train.py").rename(folder / "elsewhere.py")
    report = sweep("report", "train", "--format", "json")
    assert report.returncode == 0, report.stderr
    [card] = json.loads(report.stdout)["reports"]
    assert "accuracy" in card["question"] and "lr=0.01" in card["answer"]
    page = next(folder.glob("results/reports/train-*/report.html")).read_text()
    assert "sweep.py command" in page and "--grid lr=0.1,0.01" in page
    assert sweep("report", "all").returncode == 0
    for verb in ("retry", "run"):
        refused = sweep(verb, "train")
        assert refused.returncode == 2 and "sweep.py command 'python train.py" in refused.stderr
        assert ("--retry" in refused.stderr) == (verb == "retry")
    (folder / "elsewhere.py").rename(folder / "train.py")
    write_script(folder, end="# changed\n")
    changed = sweep(*COMMAND)
    assert changed.returncode == 0 and "2 to run" in changed.stdout
    assert "their code has changed since" in " ".join(changed.stdout.split())
    assert len(runs(folder)) == 8


@pytest.mark.usefixtures("one_ray")
def test_settings_of_a_command_are_compared(folder: Path) -> None:
    assert sweep(*COMMAND, "--seeds", "2").returncode == 0
    answer = sweep("compare", "train", "lr=0.1", "lr=0.01", "--seeds", "3", "--format", "json")
    assert answer.returncode == 1 and json.loads(answer.stdout)["pairs"] == 3, answer.stderr
    assert len(runs(folder)) == 6


@pytest.mark.usefixtures("one_ray")
def test_failed_programs_run_again(folder: Path) -> None:
    write_script(folder, end=f"if not os.path.exists({str(folder / 'cure')!r}): raise ValueError\n")
    failed = sweep(*COMMAND, *EVENTS)
    assert failed.returncode == 1 and "exit status 1: ValueError" in failed.stderr
    [line] = [line for line in failed.stderr.splitlines() if "Run failed trials again" in line]
    assert "--retry" in line and "--grid lr=0.1,0.01" in line
    begun, *trials, written, ended = map(json.loads, failed.stdout.splitlines())
    assert (begun["kind"], begun["trials"], begun["missing"]) == ("study_begun", 2, 2)
    results = [event for event in trials if event["kind"] == "trial_ended"]
    assert [event["state"] for event in results] == ["failed"] * 2
    assert all("exit status 1: ValueError" in event["cause"] for event in results)
    assert Path(written["page"]).is_file()
    assert (ended["kind"], ended["exit_status"]) == ("study_ended", 1)
    (folder / "cure").touch()
    retried = sweep(*COMMAND, "--retry", *EVENTS)
    assert retried.returncode == 0
    events = list(map(json.loads, retried.stdout.splitlines()))
    accuracies = [event["metrics"]["accuracy"] for event in events if event.get("state") == "done"]
    assert len(accuracies) == 2 and all(0.5 < accuracy < 1 for accuracy in accuracies)
    assert len(runs(folder)) == 4


@pytest.mark.usefixtures("one_ray")
def test_failing_programs_stop_early(folder: Path) -> None:
    write_script(folder, end="raise ValueError(f'wrong by {options.seed}')\n")
    words = (*COMMAND, "--seeds", "3", "--max-concurrent", "1")
    stopped = sweep(*words, "--max-failures", "2", *EVENTS)
    assert json.loads(stopped.stdout.splitlines()[-1])["exit_status"] == 2
    assert stopped.returncode == 2 and "Traceback" not in stopped.stderr
    assert "2 failed trials" in stopped.stderr and "ValueError: wrong by 1" in stopped.stderr
    assert len(runs(folder)) == 2
    resumed = sweep(*words)
    assert resumed.returncode == 1 and len(runs(folder)) == 6
    for output in (resumed.stdout, sweep("status").stdout):
        (line,) = (line for line in output.splitlines() if "trials failed on" in line)
        assert "6 trials failed" in line and "ValueError: wrong by " in line


SPACES = [
    ((), "lr=0.1 lr=0.01"),
    (("--zip", "a=1,2", "--zip", "b=3,4"), "a=1, b=3 a=2, b=4"),
    (("--grid", "a=1,2", "--grid", "b=x,y"), "a=1, b=x a=1, b=y a=2, b=x a=2, b=y"),
    (("--grid", "a=1,2", "--when", "a=2:b=5,6"), "a=1, b=5 a=2, b=5 a=2, b=6"),
]


@pytest.mark.parametrize(("options", "names"), SPACES[1:])
def test_spaces_of_a_command(folder: Path, options: tuple[str, ...], names: str) -> None:
    plan = sweep("command", "true {a} {b}", "--metric", "loss", *options, "--dry-run",
                 "--format", "json")  # fmt: skip
    assert plan.returncode == 0, plan.stderr
    groups = [trial["name"].removesuffix(" seed=1") for trial in json.loads(plan.stdout)["trials"]]
    assert " ".join(groups) == names and folder.exists()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("text", "options", "problem"),
    [
        ("true {a}", (), "{a} has no values"),
        ("true", ("--grid", "a=1"), "does not use a"),
        ("true {seed}", ("--grid", "seed=1"), "--seeds"),
        ("true {a}", ("--grid", "a"), "NAME=VALUE"),
        ("true {a}", ("--grid", "a=1", "--zip", "a=2"), "twice"),
        ("true {a} {b}", ("--zip", "a=1", "--zip", "b=2,3"), "equally"),
        ("true {a} {b}", ("--grid", "a=1", "--when", "b=2"), "--when"),
        ("true {a}", ("--grid", "a=1", "--random", "0"), "--random"),
        ("true {a}", ("--grid", "a=1,2", "--random", "1", "--search", "tpe"), "excludes"),
        ("true {a}", ("--grid", "a=1,2", "--budget", "3"), "--search"),
        ("true {a}", ("--grid", "a=1,2", "--baseline", "a=3"), "a=3"),
        ("true 'x", (), "quotation"),
        ("", (), "empty"),
        ("true {}", (), "braces"),
        ("true", ("--files", "absent"), "absent"),
        ("true", ("--files", "/etc/passwd"), "outside"),
        ("true", ("--name", "seeds"), "built-in"),
        ("true", ("--seeds", "0"), "--seeds"),
        ("true", ("--mode", "most"), "mode"),
    ],
)
def test_bad_option_is_one_sentence(text: str, options: tuple[str, ...], problem: str) -> None:
    answer = sweep("command", text, "--metric", "loss", *options, "--dry-run")
    assert answer.returncode == 2 and problem in answer.stderr
    assert "Traceback" not in answer.stderr and answer.stderr.startswith("error: ")


@pytest.mark.usefixtures("folder")
def test_program_in_this_folder_is_named() -> None:
    assert "Add --files train.py" in sweep("command", "python train.py", "--dry-run").stderr


@pytest.mark.usefixtures("folder")
def test_metric_is_required() -> None:
    assert "--metric" in sweep("command", "true", "--dry-run").stderr
