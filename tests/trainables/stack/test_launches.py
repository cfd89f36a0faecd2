"""Kernels compiled for sm_80 and sm_90 by the launches of steps at paper shapes
(`tests.trainables.stack.compile_kernels`)."""

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
"""Triton 3.5.0, which comes with the oldest torch that pyproject.toml allows (2.9)."""


@pytest.mark.parametrize(("architecture", "triton"), [("90", "installed"), ("80", "oldest")])
def test_every_kernel_compiles_and_is_fast(architecture: str, triton: str, tmp_path: Path) -> None:
    """In every kind; a kernel that no step launches is missing, too. Many warps fit on a
    multiprocessor, and products are read and written 16 bytes at a time."""
    search = sys.path if triton == "installed" else [str(OLDEST), *sys.path]
    if not Path(search[0] or ".").is_dir():
        pytest.skip("Triton 3.5.0 is not installed: make .venv/oldest-triton")
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment |= {"TRITON_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(search)}
    command = [sys.executable, "-m", "tests.trainables.stack.compile_kernels", architecture]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    summary, *kernels = [json.loads(line) for line in ended.stdout.splitlines()]
    assert summary["not compiled"] == []
    assert triton == "installed" or summary["triton"] == "3.5.0"
    of_loss = [line for line in kernels if "output_layers" in line["kernel"]]
    kinds = {
        tuple(line["arguments"].get(name) for name in ("KIND", "SUMS", "product"))
        for line in of_loss
    }
    every = {*product(("identity", "smooth", "softcap", "piecewise"), (None, False)), ("piecewise", True)}  # fmt: skip
    assert kinds == {(*kind, dtype) for kind, dtype in product(every, ("bfloat16", "float32"))}
    for line in kernels:
        assert line["registers"] <= 128 and line["local"] <= 16, line
        assert line["warps"] >= (24 if line in of_loss else 16), line
        assert line["atomics_with_a_result"] == 0, line
    for line in of_loss:
        accesses = [(call, bits) for call, bits in line["accesses"] if "(product" in call]
        assert accesses and all(bits == 128 for _, bits in accesses), line
