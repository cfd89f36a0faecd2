"""Check the installation: versions, GPU and compiler; a product, a CUDA graph, a Triton launch."""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from gpu_proof.report import Check, Question
from trainables.device import triton_problem
from trainables.gpu_probe import gpu_fault
from trainables.trial_folder import package_versions


def questions(device: str, _folder: Path) -> Iterator[Question | Check]:
    """Yield versions and, on a GPU, checks of the installation."""
    versions = {"python": platform.python_version(), **package_versions()}
    if device != "cpu":
        cuda = {
            "CUDA": torch.version.cuda,
            "cuDNN": torch.backends.cudnn.version(),
            "triton": _triton_version(),
        }
        versions |= {name: str(version) for name, version in cuda.items()}
    yield _facts("versions", versions)
    compiler = _first_line("gcc", "--version") or _first_line("cc", "--version") or "none"
    yield _facts("compiler", {"C": compiler})
    if device == "cpu":
        return
    driver = (
        _first_line("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
        or "unknown"
    )
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        facts = {
            "name": properties.name,
            "capability": f"sm_{properties.major}{properties.minor}",
            "memory_GiB": f"{properties.total_memory / 2**30:.1f}",
            "driver": driver,
            "architectures": " ".join(torch.cuda.get_arch_list()),
        }
        yield _facts(f"GPU {index}", facts)
        yield Question(f"product and captured graph on GPU {index}", partial(_without_fault, index))
    yield Question("Triton launch", partial(_without_triton_problem, device))


def _facts(name: str, facts: dict[str, str]) -> Check:
    return Check(name, "INFO", ", ".join(f"{key} {value}" for key, value in facts.items()), facts)


def _triton_version() -> str | None:
    try:
        return version("triton")
    except PackageNotFoundError:
        return None


def _first_line(program: str, *options: str) -> str | None:
    if shutil.which(program) is None:
        return None
    with suppress(OSError, subprocess.SubprocessError):
        output = subprocess.run(
            [program, *options], capture_output=True, text=True, timeout=10, check=True
        ).stdout
        return output.partition("\n")[0]
    return None


def _without_fault(index: int) -> str:
    if fault := gpu_fault(index):
        raise RuntimeError(fault)
    return "works"


def _without_triton_problem(device: str) -> str:
    if problem := triton_problem(device):
        raise RuntimeError(problem)
    return "works"
