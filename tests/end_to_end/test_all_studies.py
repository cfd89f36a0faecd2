"""Tests that an installed wheel can run and report every study at scale smoke."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from orchestrator.plan import Plan, PlanRequest, make_plan, studies_of
from orchestrator.store import open_store
from search_spaces.catalog import ALL, NAMES
from tests.support.browser import EXECUTABLE, Browser
from tests.support.command import ROOT, environment, results_table, sweep
from tests.support.one_ray import without_ray
from tests.support.smoke_trials import train_here

DATA = ROOT.parent / "shared" / "data"
PACKAGED = ("orchestrator", "gpu_proof", "search_spaces", "trainables", "sweep.py",
            "pyproject.toml", "README.md")  # fmt: skip
OUTCOMES = {"higher", "lower", "no difference shown", "too few seeds", "not measured"}
SWEPT = "fair_capacity"
"""The only study that the installed wheel trains. It has both fixed trials and tuned trials."""
OTHER = """from pathlib import Path

from search_spaces.study import Study
from trainables.config import TrialConfig

CONFIG = TrialConfig.model_validate_json((Path(__file__).parent / "config.json").read_text())
STUDY = Study(name="other", trials=lambda corpus: [CONFIG])
"""
pytestmark = [
    pytest.mark.skipif(not (DATA / "word-similarity").is_dir(), reason="no ../shared/data"),
    pytest.mark.timeout(600),
]


def run(*words: str | Path, cwd: Path) -> str:
    away = {key: value for key, value in environment().items() if key != "PYTHONPATH"}
    answer = subprocess.run(
        list(map(str, words)), cwd=cwd, env=away, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stdout[-3000:] + answer.stderr
    return answer.stdout


def other_plans() -> list[Plan]:
    request = PlanRequest(data_dir=DATA)
    return [
        make_plan(study, scale, corpus, fitting)
        for study, scale, corpus, fitting in studies_of(ALL, "smoke", None, request)
        if study.name != SWEPT
    ]


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    sources, fresh = folder / "sources", folder / "environment"
    sources.mkdir()  # Build from a copy, because the build writes folders next to the sources.
    for name in PACKAGED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, sources / name)
    venv.create(fresh, symlinks=True)
    python = fresh / "bin" / "python"
    # Reuse this environment's dependencies, so that nothing is downloaded.
    [packages] = fresh.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = (
        sys.executable,
        "-m",
        "pip",
        "--quiet",
        "--disable-pip-version-check",
        "--python",
        python,
    )
    install = ("install", "--no-deps", "--no-index", "--no-build-isolation", "--no-compile")
    run(*pip, *install, "--ignore-installed", sources, cwd=folder)
    module = run(python, "-c", "import search_spaces; print(search_spaces.__file__)", cwd=folder)
    assert module.startswith(str(fresh))
    train_here(folder / "results", *other_plans())
    words = ("all", "--scale", "smoke", "--data-dir", DATA, "--max-concurrent", "1")
    (folder / "out.txt").write_text(run(python.parent / "sweep", *words, cwd=folder))
    return folder / "results"


def test_wheel_has_every_file(storage: Path) -> None:
    [installed] = storage.parent.glob("environment/lib/python*/site-packages")
    missing = [
        path
        for room in PACKAGED[:4]
        for path in (ROOT / room).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
        if not (installed / path.relative_to(ROOT)).is_file()
    ]
    assert missing == []


def test_every_study_writes_a_report(storage: Path) -> None:
    out = (storage.parent / "out.txt").read_text()
    first = out[: out.index("Report:")]
    counts = "4 trials (4 of 72 settings): 0 to run, 4 already done"
    for part in (counts, "--scale paper", "+0.48", "+0.21"):
        assert part in first, part
    index = (storage / "reports" / "index.html").read_text()
    folders = [path.parent for path in storage.glob("reports/*/report.html")]
    assert {folder.name.partition("-")[0] for folder in folders} == set(NAMES)
    for folder in folders:
        assert f"Report: {folder / 'report.html'}" in out
        assert f'href="{folder.name}/report.html"' in index
        card = json.loads((folder / "summary.json").read_text())
        assert card["question"].endswith("?") and card["findings"]
        for finding in card["findings"]:
            assert re.search(r"[.?]$", finding["sentence"])
            assert not re.search(r" [,.;:)](\s|$)|\bNone\b", finding["sentence"])
            assert {one["verdict"] for one in finding["verdicts"]} <= OUTCOMES
        page = (folder / "report.html").read_text()
        text = re.sub(r"<svg.*?</svg>|<[^>]*>", " ", page, flags=re.DOTALL)
        assert not {"nan", "NaN", "None", "inf"} & set(text.split())


@pytest.mark.usefixtures("one_ray")
def test_search_stops_trials_of_another_study(storage: Path, tmp_path: Path) -> None:
    out = (storage.parent / "out.txt").read_text()
    assert "stage 2: 9 trials, 3 per side, chosen from" in out and "[21/21]" in out
    # Use a copy: the other tests expect only the built-in studies' reports.
    storage = shutil.copytree(storage, tmp_path / "copied")
    rows = results_table(storage, "fair_capacity")
    pruned = [row for row in rows if row["state"] == "pruned"]
    assert len(rows) == 21 and pruned, "scale smoke stops some trials early"
    assert all("stage2" in row["name"] and "epoch 1" in row["cause"] for row in pruned)
    with without_ray():
        again = sweep("fair_capacity", "--scale", "smoke", "--storage", storage)
    assert again.returncode == 0 and "21 trials: 0 to run" in again.stdout
    assert results_table(storage, "fair_capacity") == rows

    with open_store(f"sqlite:///{storage}/results.db") as store:
        [key] = [study.key for study in store.studies() if study.key.study == "fair_capacity"]
        stopped = next(row for row in store.trials(key) if row.state == "pruned")
        (tmp_path / "config.json").write_text(json.dumps(stopped.config))
        (tmp_path / "other.py").write_text(OTHER)
        # The config is already resolved, and scale paper trains a config unchanged.
        other = sweep(tmp_path / "other.py", "--scale", "paper", "--corpus", "pydocs",
                      "--gpus-per-trial", "0", "--storage", storage)  # fmt: skip
        assert other.returncode == 0, other.stdout + other.stderr
        assert "1 trial: 1 to run, 0 already done" in other.stdout
        assert store.states([stopped.trial_id]) == {stopped.trial_id: "done"}
        assert len(store.epochs(stopped.trial_id)) == stopped.config["training"]["epochs"]


@pytest.mark.skipif(EXECUTABLE is None, reason="no Chromium on this machine")
def test_pages_open_at_both_widths(storage: Path, tmp_path: Path) -> None:
    with Browser(tmp_path) as browser:
        for page in (*storage.glob("reports/*/report.html"), storage / "reports" / "index.html"):
            browser.open(page.as_uri(), width=1280)
            for width in (1280, 400):
                browser.look(width=width, dark=False)
                browser.wait_until(f"innerWidth === {width}")
                assert browser.complaints() == [], page
                sent = [url for url in browser.requests() if not url.startswith("data:")]
                assert sent == [page.as_uri()]
                assert browser.evaluate("document.documentElement.scrollWidth") <= width, page
