"""One stage: `python -m gpu_proof.stage NAME DEVICE FOLDER` writes a JSON line per check.

A stage has its own process, because a CUDA error makes a process unusable and a kernel may hang.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from gpu_proof.report import Check, answer

OPTIONAL = "safetensors"


def checks(name: str, device: str, folder: Path) -> Iterator[Check]:
    """Yield the checks of a stage; `folder` is empty and on the disk of the results."""
    try:
        stage = import_module(f"gpu_proof.stages.{name}")
    except ModuleNotFoundError as error:
        if error.name != OPTIONAL:
            raise
        yield Check(name, "SKIP", f"not tried: {OPTIONAL} is not installed")
        return
    for item in stage.questions(device, folder):
        yield item if isinstance(item, Check) else answer(item)


def main() -> None:
    """Write checks to standard output, and other output to standard error."""
    name, device, folder = sys.argv[1:]
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read at the first use of cuBLAS
    torch.set_num_threads(1)  # for tiny work, threads only add waits
    with os.fdopen(os.dup(1), "w") as channel:
        os.dup2(2, 1)
        for check in checks(name, device, Path(folder)):
            print(json.dumps(asdict(check), default=_number), file=channel, flush=True)


def _number(value: Any) -> Any:
    return value.item()


if __name__ == "__main__":
    main()
