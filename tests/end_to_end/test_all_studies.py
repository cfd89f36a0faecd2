"""Every study of the papers at scale smoke, run by what `pip install .` gives, away from the
checkout."""

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

from orchestrator.store.opening import open_store
from search_spaces.catalog import NAMES, load_study
from tests.support.browser import EXECUTABLE, Browser
from tests.support.command import ROOT, environment, results_table, sweep
from tests.support.one_ray import without_ray

DATA = ROOT.parent / "shared" / "data"
PACKAGED = (
    "orchestrator",
    "gpu_proof",
    "search_spaces",
    "trainables",
    "sweep.py",
    "pyproject.toml",
    "README.md",
)
OTHER = """import json
from pathlib import Path

from search_spaces.study import Study
from trainables.config import TrialConfig

CONFIG = TrialConfig.model_validate_json((Path(__file__).parent / "config.json").read_text())
STUDY = Study(name="other", trials=lambda corpus: [CONFIG])
"""
pytestmark = [
    pytest.mark.skipif(
        not (DATA / "word-similarity").is_dir(), reason="no ../shared/data with the benchmarks"
    ),
    pytest.mark.timeout(600),
]


def run(*words: str | Path, cwd: Path) -> str:
    without_root = {key: value for key, value in environment().items() if key != "PYTHONPATH"}
    answer = subprocess.run(
        list(map(str, words)),
        cwd=cwd,
        env=without_root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout[-3000:] + answer.stderr
    return answer.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a fresh environment with the wheel in it."""
    folder = tmp_path_factory.mktemp("wheel")
    # A copy, as the build leaves folders where the sources are.
    sources, wheels, fresh = folder / "sources", folder / "wheels", folder / "environment"
    sources.mkdir()
    for name in PACKAGED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, sources / name)
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    run(
        *pip,
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        wheels,
        sources,
        cwd=folder,
    )
    [wheel] = wheels.iterdir()
    venv.create(fresh, symlinks=True)
    python = fresh / "bin" / "python"
    run(
        *pip,
        "--python",
        python,
        "install",
        "--no-deps",
        "--no-index",
        "--no-compile",
        wheel,
        cwd=folder,
    )
    # The dependencies are those of this environment: nothing is downloaded.
    [packages] = fresh.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


@pytest.fixture(scope="module")
def elsewhere(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `sweep.py all` of the wheel was typed; what it said is in `out.txt`."""
    folder = tmp_path_factory.mktemp("elsewhere")
    words = ("all", "--scale", "smoke", "--data-dir", DATA, "--max-concurrent", "1")
    module = run(installed, "-c", "import search_spaces; print(search_spaces.__file__)", cwd=folder)
    assert module.startswith(str(installed.parents[1]))
    (folder / "out.txt").write_text(run(installed.parent / "sweep", *words, cwd=folder))
    return folder


@pytest.fixture(scope="module")
def storage(elsewhere: Path) -> Path:
    """What it left behind."""
    return elsewhere / "results"


def test_the_first_study_says_what_it_does_and_what_came_out(elsewhere: Path) -> None:
    out = (elsewhere / "out.txt").read_text()
    first = out[: out.index("Report:")]
    for sentence in (
        "4 trials: 4 to run, 0 already done",
        "--scale paper",
        "http://127.0.0.1:",
        "get-auth-token",
    ):
        assert sentence in first, sentence
    for number in ("[4/4]", "+0.48", "+0.53", "+0.24", "+0.21"):
        assert number in first, number
    assert out.count("Ray dashboard:") == 1, "they share one Ray"
    token = (Path.home() / ".ray" / "auth_token").read_text().strip()
    assert len(token) > 10
    assert token not in out


def test_each_ends_in_a_report_and_the_index_has_them_all(elsewhere: Path, storage: Path) -> None:
    for name in NAMES:
        folder = (
            storage
            / "reports"
            / f"{name}-smoke-{'pydocs' if load_study(name).reads_text else 'none'}"
        )
        assert f"Report: {folder / 'report.html'}" in (elsewhere / "out.txt").read_text()
        card = json.loads((folder / "summary.json").read_text())
        assert card["question"].endswith("?") and card["findings"]
        assert (
            f'href="{folder.name}/report.html"' in (storage / "reports" / "index.html").read_text()
        )
        text = re.sub(
            r"<svg.*?</svg>|<[^>]*>", " ", (folder / "report.html").read_text(), flags=re.S
        )
        assert not {"nan", "NaN", "None", "inf"} & set(text.split())


def test_studies_that_share_trials_train_them_once(storage: Path) -> None:
    trials = [json.loads(path.read_text()) for path in storage.glob("trials/*/*/result.json")]
    planned = json.loads(sweep("all", "--scale", "smoke", "--dry-run", "--format", "json").stdout)
    assert {trial["trial_id"] for trial in planned} <= {trial["trial_id"] for trial in trials}
    assert len(planned) < sum(len(trial["study"].split(", ")) for trial in planned)


@pytest.mark.usefixtures("one_ray")
def test_a_study_that_tunes_stops_trials_early_and_another_study_finishes_them(
    elsewhere: Path, storage: Path, tmp_path: Path
) -> None:
    out = (elsewhere / "out.txt").read_text()
    for said in (
        "stage 2: 9 trials, 3 a side, chosen by TPE",
        "21 trials: 21 to run, 0 already done",
        "[21/21]",
    ):
        assert said in out, said
    rows = results_table(storage, "fair_capacity")
    assert len(rows) == 21
    assert {row["state"] for row in rows if " stage2 " not in row["name"]} == {"done"}
    pruned = [row for row in rows if row["state"] == "pruned"]
    assert pruned, "at this scale, some trials are stopped early"
    assert all("stopped after epoch 1: its validation loss of" in row["cause"] for row in pruned)

    with without_ray():
        again = sweep("fair_capacity", "--scale", "smoke", "--storage", storage)
    assert again.returncode == 0
    assert "21 trials: 0 to run" in again.stdout
    assert results_table(storage, "fair_capacity") == rows

    with open_store(str(storage / "results.db")) as store:
        (key,) = (study.key for study in store.studies() if study.key.study == "fair_capacity")
        stopped = next(row for row in store.trials(key) if row.state == "pruned")
        (tmp_path / "config.json").write_text(json.dumps(stopped.config))
        (tmp_path / "other.py").write_text(OTHER)
        # The config is resolved already, and at scale paper a config is trained as it is.
        other = sweep(tmp_path / "other.py", "--scale", "paper", "--corpus", "pydocs", "--gpus-per-trial", "0",
                      "--storage", storage)  # fmt: skip
        assert other.returncode == 0, other.stdout + other.stderr
        assert "1 trial: 1 to run, 0 already done" in other.stdout
        assert store.states([stopped.trial_id]) == {stopped.trial_id: "done"}
        assert len(store.epochs(stopped.trial_id)) == stopped.config["training"]["epochs"]


@pytest.mark.skipif(EXECUTABLE is None, reason="no Chromium on this machine")
def test_every_page_opens_alone_without_a_complaint_at_both_widths(
    storage: Path, tmp_path: Path
) -> None:
    pages = [*storage.glob("reports/*-smoke-*/report.html"), storage / "reports" / "index.html"]
    assert len(pages) == len(NAMES) + 1
    with Browser(tmp_path) as browser:
        for page in pages:
            for width in (1280, 400):
                browser.open(page.as_uri(), width=width)
                assert browser.complaints() == [], page
                assert [url for url in browser.requests() if not url.startswith("data:")] == [
                    page.as_uri()
                ]
                assert browser.evaluate("document.documentElement.scrollWidth") <= width, page
