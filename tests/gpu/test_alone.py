"""The tests of this folder and the benchmark of GPUs where there is neither Ray nor SQL, nor much
else."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
NEEDED = {"numpy", "packaging", "pluggy", "pydantic", "pytest", "scipy", "torch"}
"""Packages of pyproject.toml and the tests' that may be imported."""
WITHOUT_OTHERS = f"""
import importlib.abc, re, runpy, sys, tomllib
project = tomllib.load(open("pyproject.toml", "rb"))["project"]
named = sum(project["optional-dependencies"].values(), project["dependencies"])
names = {{re.match(r"[\\w-]+", line)[0].replace("-", "_") for line in named}}
refused = names - {NEEDED!r} - {{"typing_extensions"}}
assert {{"ray", "safetensors", "sqlalchemy", "hypothesis"}} <= refused

class Refused(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in refused | {{"psycopg"}}:
            raise ModuleNotFoundError(f"{{name}} is taken to be missing")

sys.meta_path.insert(0, Refused())
sys.path.insert(0, ".")
"""


def run_without_others(program: str) -> str:
    answer = subprocess.run(
        [sys.executable, "-c", WITHOUT_OTHERS + program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


def test_these_tests_can_be_collected() -> None:
    arguments = ["tests/gpu", "--collect-only", "-q", "-p", "no:cacheprovider"]
    # pytest's own plugins from packages that are installed here and not there.
    program = f"""
import os, pytest
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
sys.exit(pytest.main({arguments}))
"""
    assert "test_stack.py" in run_without_others(program)


def test_the_benchmark_makes_every_kind_of_line(tmp_path: Path) -> None:
    written = tmp_path / "lines.json"
    options = "--device cpu --scale tiny --steps 1 --sizes 2 1 --corpora wikitext-2"
    rest = f"--layers softmax mos monotone_nn --precisions tf32 float32 --json {written}"
    out = run_without_others(
        f"sys.argv = {['gpu', *options.split(), *rest.split()]}\nimport benchmarks.gpu as gpu\n"
        + """
try:
    gpu.main()
except SystemExit as ended:
    assert ended.code == 0
"""
    )
    figures = json.loads(written.read_text())
    lines = figures["lines"]
    assert len(out.splitlines()) == 3 + len(lines)
    assert Counter(line["job"] for line in lines) == {
        "stack 2": 4, "stack 1": 4, "alone": 6, "torch.nn": 2, "spectrum": 1
    }  # fmt: skip
    for line in lines:
        assert not line["failed"] and line["seconds"] > 0
        if line["how"] == "stack":
            assert {*line["parts"]} == {"network", "output", "optimiser"}
            assert all(part > 0 for part in line["parts"].values())
    assert {*figures["ceilings"]["tflop_s"]} == {"tf32", "float32"}
