from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
NEEDED = {"numpy", "packaging", "pluggy", "pydantic", "pytest", "scipy", "torch"}
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


def test_gpu_tests_can_be_collected() -> None:
    arguments = ["tests/gpu", "--collect-only", "-q", "-p", "no:cacheprovider"]
    # Do not load pytest plugins: a GPU host may not have them.
    program = f"""
import os, pytest
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
sys.exit(pytest.main({arguments}))
"""
    command = [sys.executable, "-c", WITHOUT_OTHERS + program]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert answer.returncode == 0 and "test_stack.py" in answer.stdout, answer.stderr
