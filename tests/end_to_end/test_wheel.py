"""What `pip install .` gives runs a study away from the checkout."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from tests.support.command import ROOT, environment

PACKAGED = ("orchestrator", "search_spaces", "trainables", "sweep.py", "pyproject.toml", "README.md")


def run(*words: str | Path, cwd: Path) -> str:
    without_root = {key: value for key, value in environment().items() if key != "PYTHONPATH"}
    answer = subprocess.run(
        list(map(str, words)), cwd=cwd, env=without_root, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


def test_the_wheel_in_a_fresh_environment_runs_a_smoke_study(tmp_path: Path) -> None:
    # A copy, as the build leaves folders where the sources are.
    sources, wheels, fresh = tmp_path / "sources", tmp_path / "wheels", tmp_path / "environment"
    for name in PACKAGED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        sources.mkdir(exist_ok=True)
        copy(ROOT / name, sources / name)
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    run(*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", wheels, sources, cwd=tmp_path)
    [wheel] = wheels.iterdir()
    venv.create(fresh, symlinks=True)
    python = fresh / "bin" / "python"
    run(*pip, "--python", python, "install", "--no-deps", "--no-index", wheel, cwd=tmp_path)
    # The dependencies are those of this environment: nothing is downloaded.
    [packages] = fresh.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    module = run(python, "-c", "import search_spaces; print(search_spaces.__file__)", cwd=elsewhere)
    assert module.startswith(str(fresh))
    answer = run(python, "-m", "sweep", "press_robustness", "--scale", "smoke", cwd=elsewhere)
    assert "done" in answer
    assert (elsewhere / "results").is_dir()
