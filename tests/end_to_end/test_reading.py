from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.request import HTTPCookieProcessor, build_opener

import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.support.command import ROOT, sweep
from tests.support.laptop import HIDE_PROC, WITHOUT_PACKAGES, laptop, laptop_without_linux
from tests.support.reading import answers
from tests.support.smoke_trials import smoke_plan, train_here
from trainables.trial_folder import TrialFolder, TrialOutcome

OWN = """
import torch
from search_spaces.study import Study
from trainables.config import Trainable

class Cosine(Trainable):
    width: int = 1

    def train(self, trial):
        return {"cosine": torch.tensor(self.width).cos()}

STUDY = Study(name="own", trials=lambda: [Cosine(width=2)], metric="cosine", seeds=1)
"""
PYTHON, SWEEP = sys.executable, str(ROOT / "sweep.py")


@pytest.fixture(scope="module")
def read(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a storage folder with a built-in study and one of own code."""
    storage = shutil.copytree(finished, tmp_path_factory.mktemp("read") / "results")
    file = storage.parent / "own.py"
    file.write_text(OWN)
    train_here(storage, smoke_plan(file, "none"))
    answer = sweep(file, "--storage", storage)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return storage


def run(
    *words: str | Path, env: dict[str, str], cwd: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, env=env, cwd=cwd, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def head(read: Path) -> Path:
    file = read.parent / "head.safetensors"
    matrix = np.random.default_rng(0).normal(size=(300, 70)).astype(np.float32)
    save_file({"lm_head.weight": matrix}, file)
    return file


@pytest.fixture(scope="module")
def printed(read: Path, head: Path) -> dict[str, Any]:
    """Return what each command prints in this environment, which has everything."""
    return answers(str(read), str(head))


def test_reading_needs_neither_ray_nor_torch(
    read: Path, head: Path, printed: dict[str, Any], tmp_path: Path
) -> None:
    environment = laptop(tmp_path, WITHOUT_PACKAGES)
    reading = run(PYTHON, "-m", "tests.support.reading", read, head, env=environment)
    assert reading.returncode == 0, reading.stderr
    assert json.loads(reading.stdout) == printed


@pytest.mark.parametrize(
    ("words", "key_word"),
    [
        (("gss_grid", "--scale", "smoke"), "package ray"),
        (("results", "own.py"), "the study's name"),
        (("report", "own.py"), "'torch'. Install"),
    ],
)
def test_missing_package_is_one_sentence(
    read: Path, tmp_path: Path, words: tuple[str, ...], key_word: str
) -> None:
    environment = laptop(tmp_path, WITHOUT_PACKAGES)
    storage = tmp_path / "new" if words[0] == "gss_grid" else read
    answer = run(PYTHON, SWEEP, *words, "--storage", storage, env=environment, cwd=read.parent)
    assert answer.returncode == 2 and key_word in answer.stderr
    assert answer.stderr.splitlines()[-1].startswith("error: ")
    assert "Traceback" not in answer.stderr


def test_reading_needs_no_proc(read: Path, printed: dict[str, Any], tmp_path: Path) -> None:
    environment = laptop_without_linux(tmp_path)
    for command in ("status", "results gss_grid --format csv", "report gss_grid --format json"):
        words = (*command.split(), "--storage", str(read))
        answer = run(*HIDE_PROC, PYTHON, SWEEP, *words, env=environment)
        assert answer.returncode == 0, answer.stderr
        assert answer.stdout == printed[command], command


def test_page_needs_neither_proc_nor_torch(read: Path, tmp_path: Path) -> None:
    environment = laptop_without_linux(tmp_path)
    with (tmp_path / "site" / "sitecustomize.py").open("a") as file:
        file.write(WITHOUT_PACKAGES)
    words = [*HIDE_PROC, PYTHON, SWEEP, "view", "--storage", str(read)]
    page = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert page.stdout is not None
        link = re.search(r"http://\S+", page.stdout.readline())
        assert link is not None
        opener = build_opener(HTTPCookieProcessor(CookieJar()))
        assert b"<title>Sweeps</title>" in opener.open(link.group()).read()
        assert b"dash" in opener.open(link.group().partition("?")[0] + "_dash-layout").read()
        page.send_signal(signal.SIGINT)
        assert page.wait(60) == 0
    finally:
        page.kill()
        page.communicate()


def test_trial_needs_no_proc(read: Path, tmp_path: Path) -> None:
    environment = laptop_without_linux(tmp_path)
    [trial] = smoke_plan("gss_grid").trials[:1]
    config, folder = tmp_path / "trial.json", tmp_path / "trial"
    config.write_text(trial.validated.model_dump_json())
    words = ("-m", "trainables", config, "--directory", folder)
    answer = run(*HIDE_PROC, PYTHON, *words, env=environment)
    assert answer.returncode == 0, answer.stderr
    outcome = TrialOutcome.model_validate_json(answer.stdout)
    known = TrialFolder(read / "trials" / trial.trial_id[:2] / trial.trial_id, trial.trial_id)
    expected = known.outcome()
    assert expected is not None
    one, other = (item.model_dump()["measurements"]["training@1"] for item in (outcome, expected))
    # Without /proc/cpuinfo, torch chooses other instructions.
    np.testing.assert_allclose(one["valid_perplexity"], other["valid_perplexity"], rtol=1e-5)
    assert one["peak_memory_mib"] > 50


def test_docs_list_the_packages_to_read() -> None:
    page = (ROOT / "docs" / "keeping-results.md").read_text()
    [line] = re.findall(r"pip install (.*)", page)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["view"]]
    names = {re.split(r"[\[>=]", requirement)[0] for requirement in needed}
    unneeded = {"ray", "torch", "optuna", "pooch", "psycopg", "typing-extensions"}
    assert set(line.split()) == names - unneeded
