from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="Triton exists for Linux only")
OLDEST = Path(sys.prefix) / "oldest-triton"
"""Folder with Triton 3.5.0, which belongs to torch 2.9, the oldest in pyproject.toml."""


@pytest.mark.parametrize(
    ("architecture", "triton", "shapes"), [("90", "installed", "4"), ("80", "oldest", "2")]
)
def test_every_kernel_compiles(architecture: str, triton: str, shapes: str, tmp_path: Path) -> None:
    search = sys.path if triton == "installed" else [str(OLDEST), *sys.path]
    if not Path(search[0] or ".").is_dir():
        pytest.skip("Triton 3.5.0 is not installed: make .venv/oldest-triton")
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment |= {"TRITON_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(search)}
    command = [sys.executable, "-m", "tests.trainables.stack.compile_kernels", architecture, shapes]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    answer = json.loads(ended.stdout)
    assert answer["not compiled"] == []
    assert triton == "installed" or answer["triton"] == "3.5.0"
    bends = ("identity", "smooth", "softcap", "piecewise")
    kinds = {*product(bends, (None, False)), ("piecewise", True)}
    of_loss = [
        tuple(kind)
        for name, kinds in answer["compiled"].items()
        if "output_layers" in name
        for kind in kinds
    ]
    expected = product(kinds, ("torch.bfloat16", "torch.float32"))
    assert {*of_loss} == {(*kind, dtype) for kind, dtype in expected}
