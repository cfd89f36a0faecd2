"""The command as a user meets it: real processes, real Ray, real kills. Scale smoke, seconds a
run."""

from __future__ import annotations

import json
import os
import pty
import random
import select
import shutil
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from io import TextIOWrapper
from pathlib import Path

import numpy as np
import pytest

from orchestrator.command.app import main
from orchestrator.plan import PlanRequest, make_plan, scale_named
from orchestrator.store.opening import open_store
from orchestrator.store.records import RunRecord
from search_spaces.catalog import load_study
from tests.support.command import ROOT, environment, results_table, start, sweep, sweep_process
from tests.support.one_ray import start_ray, without_ray
from trainables.trial_folder.folder import trial_directory

SHARED = ROOT.parent / "shared" / "data"
SMOKE = ("gss_grid", "--scale", "smoke", "--max-concurrent", "1", "--storage")
TROUBLE = """from search_spaces.study import Study
from trainables.config import GssConfig, TrialConfig
from search_spaces.awd_lstm import awd_lstm

def trials(corpus):
    good = awd_lstm(corpus, GssConfig(c=0, k=2))
    yield good
    yield changed(good, seed=1, learning_rate=1e12)
    yield changed(good, seed=2)
    yield changed(good, seed=3, gradient_clip_norm=0.2)

def changed(config, seed, **training):
    return config.model_copy(update={"seed": seed, "training": config.training.model_copy(update=training)})

STUDY = Study(name="trouble", trials=trials, label=lambda config: f"seed {config.seed}")
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The storage of one smoke sweep that nobody disturbed."""
    start_ray()
    storage = tmp_path_factory.mktemp("undisturbed")
    answer = sweep(*SMOKE, storage)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return storage


@pytest.fixture
def copy(undisturbed: Path, tmp_path: Path) -> Path:
    """Of that storage, to be changed."""
    return Path(shutil.copytree(undisturbed, tmp_path / "copy"))


def test_typed_again_it_runs_nothing_and_reports_again(undisturbed: Path) -> None:
    before = results_table(undisturbed)
    assert [row["state"] for row in before] == ["done"] * 4
    assert all(float(row["test_perplexity"]) > 1 and int(row["press_rank"]) >= 1 for row in before)
    report = next(undisturbed.glob("reports/*/report.html"))
    report.unlink()
    with without_ray():
        answer = sweep(*SMOKE, undisturbed)
    assert answer.returncode == 0
    *_, page, _, look = answer.stdout.splitlines()
    assert page == f"Report: {undisturbed}/reports/gss_grid-smoke-pydocs/report.html"
    assert look == f"Look at its trials with: python sweep.py view --storage {undisturbed}"
    assert "0 to run, 4 already done" in answer.stdout
    assert report.is_file()
    assert results_table(undisturbed) == before


@pytest.mark.usefixtures("one_ray")
def test_killed_at_a_random_moment_it_ends_with_the_same_table(
    undisturbed: Path, tmp_path: Path
) -> None:
    """The kill hits a driver whose worker is training, with none or some of the trials done."""
    disturbed, done = tmp_path / "disturbed", random.randrange(4)
    process = start(*SMOKE, disturbed)
    while process.poll() is None and not (
        len(_results(disturbed)) >= done and _training(disturbed)
    ):
        time.sleep(0.02)
    time.sleep(random.uniform(0, 0.5))
    assert process.poll() is None, "the sweep ended before it could be killed"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    before = _results(disturbed)
    assert len(before) >= done
    answer = sweep(*SMOKE, disturbed)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert results_table(disturbed) == results_table(undisturbed)
    after = _results(disturbed)
    assert {path: after[path] for path in before} == before, "a finished trial was trained again"
    check = sweep("store", "check", "--storage", disturbed)
    assert check.returncode == 0, check.stdout


def _results(storage: Path) -> dict[Path, int]:
    """The trials' results, and when each was written."""
    return {path: path.stat().st_mtime_ns for path in storage.glob("trials/*/*/result.json")}


def _training(storage: Path) -> bool:
    """Whether some worker is at a trial that has no result yet."""
    locks = storage.glob("trials/*/*/lock")
    return any(
        _lock_holder(lock) is not None and not (lock.parent / "result.json").exists()
        for lock in locks
    )


def test_ctrl_c_in_a_terminal_keeps_what_was_done_and_says_how_to_go_on(tmp_path: Path) -> None:
    """A real terminal: the key goes to every process of the foreground group, Ray's included."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        arguments = [
            sys.executable,
            "sweep.py",
            *SMOKE,
            str(tmp_path),
            "--set",
            "training.epochs=400",
        ]
        os.execve(sys.executable, arguments, environment())
    seen = _read_until(terminal, "val. perplexity", timeout_s=180)
    os.write(terminal, b"\x03")
    seen += _read_until(terminal, "to go on", timeout_s=60)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 130, seen
    assert "results and checkpoints are kept" in seen
    assert "Traceback" not in seen
    answer = sweep("status", "--storage", tmp_path, "--format", "csv")
    assert "running" in answer.stdout.splitlines()[0]
    assert ",0,0,4,0,0,0" in answer.stdout, answer.stdout


def _read_until(terminal: int, wanted: str, timeout_s: float) -> str:
    seen, deadline = "", time.monotonic() + timeout_s
    while wanted not in seen and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                seen += os.read(terminal, 65536).decode(errors="replace")
            except OSError:
                break
    assert wanted in seen, seen[-2000:]
    return seen


@pytest.mark.usefixtures("one_ray")
def test_trials_that_diverge_raise_or_die_are_named_and_the_others_finish(tmp_path: Path) -> None:
    study = tmp_path / "trouble.py"
    study.write_text(TROUBLE)
    storage = tmp_path / "results"
    arguments = (study, "--scale", "smoke", "--storage", storage, "--max-concurrent", "1",
                 "--set", "training.epochs=3")  # fmt: skip
    ids = _trial_ids(arguments)
    in_the_way, victim = trial_directory(storage, ids["seed 2"]), ids["seed 3"]
    in_the_way.parent.mkdir(parents=True)
    in_the_way.write_text("a file where the trial's folder should be")
    with ThreadPoolExecutor(1) as threads:
        killed = threads.submit(_kill_holders, trial_directory(storage, victim) / "lock", 2)
        answer = sweep(*arguments)
        assert killed.result() == 2, answer.stdout + answer.stderr
    assert answer.returncode == 1, answer.stdout + answer.stderr
    assert "Traceback" not in answer.stdout + answer.stderr
    rows = {row["name"]: row for row in results_table(storage, str(study))}
    assert {name: row["state"] for name, row in rows.items()} == {
        "seed 141": "done", "seed 1": "diverged", "seed 2": "failed", "seed 3": "failed"
    }  # fmt: skip
    causes = {
        "seed 1": "nats per token in epoch 1",
        "seed 2": "FileExistsError",
        "seed 3": "its process died",
    }
    for name, cause in causes.items():
        assert cause in rows[name]["cause"]
        assert rows[name]["cause"] in answer.stdout
    assert (
        f"python sweep.py retry {study} --scale smoke --storage {storage} --max-concurrent 1 --set"
        in answer.stdout
    )

    again = sweep(*arguments)
    assert (again.returncode, "0 to run" in again.stdout) == (1, True)
    in_the_way.unlink()
    retried = sweep("retry", *arguments)
    assert retried.returncode == 1
    assert "3 to run, 1 already done" in retried.stdout
    assert "trouble" in sweep("status", study, "--storage", storage).stdout
    states = {row["name"]: row["state"] for row in results_table(storage, "trouble")}
    assert states == {"seed 141": "done", "seed 1": "diverged", "seed 2": "done", "seed 3": "done"}


def _kill_holders(lock: Path, times: int) -> int:
    """Kill the first processes that hold the lock; how many there were within two minutes."""
    killed: set[int] = set()
    deadline_s = time.monotonic() + 120
    while len(killed) < times and time.monotonic() < deadline_s:
        holder = _lock_holder(lock)
        if holder is not None and holder not in killed:
            os.kill(holder, signal.SIGKILL)
            killed.add(holder)
        time.sleep(0.05)
    return len(killed)


def _trial_ids(arguments: tuple[str | Path, ...]) -> dict[str, str]:
    answer = sweep(*arguments, "--dry-run", "--format", "csv")
    lines = [line.split(",") for line in answer.stdout.splitlines()]
    columns = lines[0]
    return {line[columns.index("name")]: line[columns.index("trial_id")] for line in lines[1:]}


def _lock_holder(path: Path) -> int | None:
    """The process that holds the lock on a file, from /proc/locks."""
    if not path.exists():
        return None
    inode = str(path.stat().st_ino)
    for line in Path("/proc/locks").read_text().splitlines():
        fields = line.split()
        if "->" not in fields and fields[5].split(":")[-1] == inode:
            return int(fields[4])
    return None


def test_results_come_in_four_formats(undisturbed: Path, tmp_path: Path) -> None:
    import pyarrow.parquet

    command = ("results", "gss_grid", "--storage", undisturbed, "--format")
    shown = {form: sweep(*command, form) for form in ("table", "csv", "json")}
    assert all(answer.returncode == 0 for answer in shown.values())
    records = json.loads(shown["json"].stdout)
    assert len(records) == 4
    assert len(shown["csv"].stdout.splitlines()) == 5
    assert all(record["name"] in shown["table"].stdout for record in records)
    file = tmp_path / "results.parquet"
    with file.open("wb") as stream, redirect_stdout(TextIOWrapper(stream)):
        assert main(list(map(str, (*command, "parquet")))) == 0
    assert pyarrow.parquet.read_table(file).column("press_rank").to_pylist() == [
        r["press_rank"] for r in records
    ]


@pytest.mark.usefixtures("one_ray")
def test_retry_runs_just_the_failed_ones_and_a_variant_with_set_does_not_hide_the_plain_study(
    copy: Path,
) -> None:
    """A planned trial stays planned: retry is no second way to run everything."""
    shorter = ("--set", "training.epochs=1")
    ids = list(_trial_ids((*SMOKE, copy, *shorter)).values())
    request = PlanRequest(settings={"training.epochs": (1,)})
    with open_store(str(copy / "results.db")) as store:
        plan = make_plan(load_study("gss_grid"), scale_named("smoke"), "pydocs", request)
        store.register(plan.key, [trial.planned() for trial in plan.trials])
        run = RunRecord(code_version="-", packages={}, host="-", device="-", corpus_sha256="0" * 64)
        store.fail(ids[1], cause="a cause", run_id=store.begin_run(run))
    elsewhere = sweep("retry", "gss_grid", "--scale", "quick", "--storage", copy)
    assert "failed or diverged at scale smoke, corpus pydocs" in elsewhere.stdout
    answer = sweep("retry", *SMOKE, copy, *shorter)
    assert answer.returncode == 1
    assert "1 to run" in answer.stdout
    plain = sweep("results", "gss_grid", "--storage", copy, "--format", "json")
    other = sweep("results", "gss_grid", "--storage", copy, "--format", "json", *shorter)
    assert [(row["state"], row["epochs"]) for row in json.loads(plain.stdout)] == [("done", 2)] * 4
    assert [row["state"] for row in json.loads(other.stdout)] == [
        "planned",
        "done",
        "planned",
        "planned",
    ]
    assert json.loads(other.stdout)[1]["epochs"] == 1
    assert "--set" in plain.stderr


def test_retry_where_nothing_failed_changes_nothing(undisturbed: Path, tmp_path: Path) -> None:
    before = sweep("status", "--storage", undisturbed, "--format", "csv").stdout
    answer = sweep("retry", "gss_grid", "--scale", "quick", "--storage", undisturbed)
    assert (answer.returncode, "nothing to retry" in answer.stdout) == (0, True)
    assert sweep("status", "--storage", undisturbed, "--format", "csv").stdout == before
    empty = sweep("retry", *SMOKE, tmp_path)
    assert (empty.returncode, empty.stderr.startswith("error: ")) == (2, True)


@pytest.mark.parametrize("harm", ["deleted", "truncated", "an older copy", "no database"])
def test_a_lost_store_is_made_again_and_nothing_is_trained_twice(copy: Path, harm: str) -> None:
    before, path = results_table(copy), copy / "results.db"
    if harm == "deleted":
        path.unlink()
    elif harm == "an older copy":
        with open_store(str(copy / "older.db")) as store:
            plan = make_plan(load_study("gss_grid"), scale_named("smoke"), "pydocs")
            store.register(plan.key, [trial.planned() for trial in plan.trials])
        (copy / "older.db").replace(path)
    else:
        content = path.read_bytes()
        path.write_bytes(content[:9999] if harm == "truncated" else b"x" * 9999)
    if harm != "an older copy":
        answer = sweep("results", "gss_grid", "--storage", copy)
        assert answer.returncode == 2 and "sweep.py store rebuild" in answer.stderr
    answer = sweep("store", "rebuild", "--storage", copy)
    assert answer.returncode == 0 and "1 study, 4 trials and 4 results" in answer.stdout
    assert len([*copy.glob("results.db.before-*")]) == (harm != "deleted")
    assert _without_attempts(results_table(copy)) == _without_attempts(before)
    with without_ray():
        answer = sweep(*SMOKE, copy)
    assert answer.returncode == 0 and "4 already done" in answer.stdout
    assert sweep("store", "check", "--storage", copy).returncode == 0


def _without_attempts(table: list[dict[str, str]]) -> list[dict[str, str]]:
    return [{**row, "attempt": ""} for row in table]


def test_a_plan_without_results_does_not_hide_those_there_are(copy: Path) -> None:
    with open_store(str(copy / "results.db")) as store:
        plan = make_plan(load_study("gss_grid"), scale_named("paper"), "ptb")
        store.register(plan.key, [trial.planned() for trial in plan.trials])
    assert [row["state"] for row in results_table(copy)] == ["done"] * 4


def test_reports_are_written_again_one_elsewhere_and_all_in_their_places(
    copy: Path, tmp_path: Path
) -> None:
    assert (
        sweep("report", "gss_grid", "--storage", copy, "--out", tmp_path / "there").returncode == 0
    )
    assert (tmp_path / "there" / "report.html").is_file()
    written = sorted((copy / "reports").glob("*/report.html"))
    for page in written:
        page.unlink()
    answer = sweep("report", "all", "--storage", copy)
    assert answer.returncode == 0, answer.stderr
    assert sorted((copy / "reports").glob("*/report.html")) == written
    assert f"All reports: {copy}/reports/index.html" in answer.stdout


def test_a_cluster_that_is_not_there_is_one_sentence_of_the_real_process_and_its_status(
    tmp_path: Path,
) -> None:
    answer = sweep_process(*SMOKE, tmp_path, "--address", "127.0.0.1:1")
    assert answer.returncode == 2
    [sentence] = answer.stderr.splitlines()
    assert sentence.startswith("error: ") and "127.0.0.1:1" in sentence


@pytest.mark.skipif(
    not (SHARED / "ptb" / "train.txt").is_file(), reason="needs ../shared/data, which is not here"
)
@pytest.mark.usefixtures("one_ray")
def test_the_penn_treebank_runs_from_a_data_folder(tmp_path: Path) -> None:
    answer = sweep(*SMOKE, tmp_path, "--corpus", "ptb", "--data-dir", SHARED)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert {row["corpus.name"] for row in results_table(tmp_path)} == {"ptb"}


def test_rank_measures_a_saved_matrix(tmp_path: Path) -> None:
    numbers = np.random.default_rng(0)
    np.save(tmp_path / "low.npy", numbers.normal(size=(200, 7)) @ numbers.normal(size=(7, 90)))
    answer = sweep("rank", tmp_path / "low.npy", "--format", "csv")
    assert answer.returncode == 0, answer.stderr
    assert "press_rank,7" in answer.stdout
