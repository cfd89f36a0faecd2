from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from orchestrator.command.app import main
from tests.support.command import ROOT, UV
from trainables.trial_folder import code_version


@pytest.fixture
def script(tmp_path: Path) -> Path:
    script = tmp_path / "bin" / "sweep"
    script.parent.mkdir()
    script.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from sweep import main\nif __name__ == '__main__':\n    sys.exit(main())\n"
    )
    script.chmod(0o700)
    return script


def test_installed_script_prints_its_name(script: Path, tmp_path: Path) -> None:
    answer = subprocess.run(
        [script, "gss_grid", "--format", "csv"], cwd=tmp_path, capture_output=True, text=True
    )
    assert answer.returncode == 2
    assert answer.stderr.endswith(": sweep results gss_grid\n")
    usage = subprocess.run([script, "--help"], cwd=tmp_path, capture_output=True, text=True)
    assert (
        usage.stdout.startswith("Usage: sweep [OPTIONS] COMMAND")
        and "`sweep STUDY` plans" in usage.stdout
    )


def test_commands_repeat_the_interpreter(tmp_path: Path) -> None:
    """`make` does not activate the environment, so printed commands must name its Python."""
    (tmp_path / "python").symlink_to(sys.executable)
    (tmp_path / "sweep.py").symlink_to(ROOT / "sweep.py")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    command = ["./python", "sweep.py", "gss_grid", "--format", "csv"]
    answer = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert answer.stderr.endswith(": ./python sweep.py results gss_grid\n")


@pytest.mark.skipif(not UV.exists(), reason="uv is not installed")
def test_commands_repeat_uv_run() -> None:
    command = [str(UV), "run", "--no-project", "--offline", "--python", sys.executable, "sweep.py"]
    words = ("gss_grid", "--format", "csv")
    answer = subprocess.run([*command, *words], cwd=ROOT, capture_output=True, text=True)
    assert answer.stderr.endswith(": uv run sweep.py results gss_grid\n")


@pytest.mark.parametrize(
    ("typed", "completions"),
    [
        ("sweep gss", ["gss_grid"]),
        ("sweep st", ["stop", "studies", "status", "store"]),
        ("sweep gss_grid --scale ", ["smoke", "quick", "small", "paper"]),
        ("sweep gss_grid --max-c", ["--max-concurrent"]),
        ("sweep results plif_lm --format ", ["table", "csv", "json", "parquet"]),
    ],
)
def test_shell_completes_words(script: Path, typed: str, completions: list[str]) -> None:
    completion = {
        "_SWEEP_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(typed.count(" ")),
    }
    answer = subprocess.run(
        [script], env={**os.environ, **completion}, capture_output=True, text=True
    )
    assert answer.stdout.split() == completions, answer.stderr


def test_missing_packages_print_install_command() -> None:
    answer = subprocess.run(
        [sys.executable, "-S", ROOT / "sweep.py", "gss_grid"], capture_output=True, text=True
    )
    assert answer.returncode == 2 and answer.stdout == ""
    assert "is not installed for" in answer.stderr and "`make sweep`" in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_old_python_is_refused() -> None:
    """Python before 3.10 has no sys.orig_argv and cannot parse newer syntax in the imports."""
    script = f"""
import runpy, sys
del sys.orig_argv
sys.version_info = (3, 8, 1)
sys.argv = ["sweep.py", "gss_grid"]
runpy.run_path({str(ROOT / "sweep.py")!r}, run_name="__main__")
"""
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert answer.returncode == 2 and answer.stdout == ""
    assert "too old" in answer.stderr and answer.stderr.count("\n") == 1


def test_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    number = version("softmax-bottleneck-sweeps")
    assert capsys.readouterr().out == f"softmax-bottleneck-sweeps {number}, code {code_version()}\n"
