"""The tests of this folder and the benchmark of GPUs where there is neither Ray nor SQL, nor much else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEEDED = {"numpy", "packaging", "pluggy", "pydantic", "pytest", "scipy", "torch"}
"""Packages of pyproject.toml and the tests' that may be imported."""
WITHOUT_OTHERS = f"""
import importlib.abc, re, runpy, sys, tomllib
project = tomllib.load(open("pyproject.toml", "rb"))["project"]
named = sum(project["optional-dependencies"].values(), project["dependencies"])
refused = {{re.match(r"[\\w-]+", line)[0].replace("-", "_") for line in named}} - {NEEDED!r} - {{"typing_extensions"}}
assert {{"ray", "safetensors", "sqlalchemy", "lazy_loader", "hypothesis"}} <= refused

class Refused(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in refused | {{"psycopg"}}:
            raise ModuleNotFoundError(f"{{name}} is taken to be missing")

sys.meta_path.insert(0, Refused())
sys.path.insert(0, ".")
"""


def run_without_others(program: str) -> str:
    answer = subprocess.run(
        [sys.executable, "-c", WITHOUT_OTHERS + program], cwd=ROOT, capture_output=True, text=True, timeout=240
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


def test_these_tests_can_be_collected() -> None:
    arguments = ["tests/gpu", "--collect-only", "-q", "-p", "no:cacheprovider"]
    # pytest's own plugins from packages that are installed here and not there.
    program = (
        f"import os, pytest; os.environ['PYTEST_DISABLE_PLUGIN_AUTOLOAD'] = '1'; sys.exit(pytest.main({arguments}))"
    )
    assert "test_stack.py" in run_without_others(program)


def test_the_benchmark_makes_its_steps() -> None:
    program = """
sys.argv = ["gpu", "--device", "cpu", "--steps", "1", "--corpora", "ptb", "--layers", "softmax"]
import benchmarks.gpu as gpu
paper_trial = gpu.paper_trial
gpu.paper_trial = lambda *of_trial: paper_trial(*of_trial).model_copy(
    update={"model": gpu.TrialConfig.model_fields["model"].default.model_copy(
        update={"embedding_width": 8, "hidden_width": 8, "context_width": 8}
    )}
)
gpu.main()
"""
    assert "softmax     tf32" in run_without_others(program)


@pytest.mark.parametrize("package", ["ray", "sqlalchemy"])
def test_what_is_taken_to_be_missing_cannot_be_imported(package: str) -> None:
    assert "missing" in run_without_others(
        f"try:\n    import {package}\nexcept ModuleNotFoundError as e:\n    print(e)"
    )
