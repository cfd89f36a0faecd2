"""Kernels compiled for sm_80 and sm_90 by the launches of steps at paper shapes
(`tests.support.compile_kernels`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("triton", reason="Triton exists for Linux only")
OLDEST = Path(sys.prefix) / "oldest-triton"
"""Triton 3.5.0, which comes with the oldest torch that pyproject.toml allows (2.9)."""


@pytest.fixture(scope="module", params=["installed", "oldest"])
def compiled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Sequence[dict[str, Any]]:
    """The lines of the program: first a summary, then a kernel each."""
    search, architectures = sys.path, ["80", "90"]
    if request.param == "oldest":
        if not OLDEST.is_dir():
            pytest.skip("Triton 3.5.0 is not installed: make .venv/oldest-triton")
        search, architectures = [str(OLDEST), *sys.path], ["80"]
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment |= {
        "TRITON_CACHE_DIR": str(tmp_path_factory.mktemp("cache")),
        "PYTHONPATH": os.pathsep.join(search),
    }
    command = [sys.executable, "-m", "tests.support.compile_kernels", *architectures]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert request.param == "installed" or lines[0]["triton"] == "3.5.0"
    return lines


def of_the_loss(compiled: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [line for line in compiled[1:] if "output_layers" in line["kernel"]]


def test_every_kernel_is_compiled_in_every_kind(compiled: Sequence[dict[str, Any]]) -> None:
    """A kernel that no step launches is missing, too."""
    assert compiled[0]["not compiled"] == []
    kinds = {
        tuple(line["arguments"].get(name) for name in ("KIND", "SUMS", "product"))
        for line in of_the_loss(compiled)
    }
    every = {
        *product(("identity", "smooth", "softcap", "piecewise"), (None, False)),
        ("piecewise", True),
    }
    assert kinds == {(*kind, dtype) for kind, dtype in product(every, ("bfloat16", "float32"))}


def test_kernels_fill_a_multiprocessor(compiled: Sequence[dict[str, Any]]) -> None:
    for line in compiled[1:]:
        assert line["registers"] <= 128 and line["local"] <= 16 and line["warps"] >= 16, line
        assert line["atomics_with_a_result"] == 0, line
    assert all(line["warps"] >= 24 for line in of_the_loss(compiled))


def test_products_are_read_and_written_in_16_bytes(compiled: Sequence[dict[str, Any]]) -> None:
    for line in of_the_loss(compiled):
        of_products = [(call, bits) for call, bits in line["accesses"] if "(product" in call]
        assert of_products and all(bits == 128 for _, bits in of_products), line
        assert any("tl.store(" in call for call, _ in of_products) == line["kernel"].endswith(
            "_backward"
        ), line
