from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import time
from pathlib import Path

import torch
from torch import Tensor

from trainables.output_layers import LayerShape, Pointwise, PointwiseSoftmax

STEP, FOREVER_S = 3, 10**6
CONTAINERS = Path("/sys/fs/cgroup/memory")


class Misbehaving(Pointwise):
    """An identity function that fails, hangs or dies at its third training step."""

    def __init__(self, does: str) -> None:
        super().__init__()
        self.does, self.calls = does, 0

    def forward(self, logits: Tensor) -> Tensor:
        if not (self.training and torch.is_grad_enabled()):
            return logits
        self.calls += 1
        return self.misbehave(logits) if self.calls == STEP else logits

    def misbehave(self, logits: Tensor) -> Tensor:
        match self.does:
            case "holds Python's lock":
                ctypes.PyDLL(None).sleep(FOREVER_S)
            case "allocates 50 GB":
                allocate(50)
            case "fills its container":
                fill_container()
            case "forks":
                os.fork()
            case "leaves":
                os._exit(3)
            case "is stopped":
                os.kill(os.getpid(), signal.SIGSTOP)
            case "sleeps":
                time.sleep(FOREVER_S)
            case "raises":
                raise ValueError("on purpose")
            case "exits":
                sys.exit(3)
            case "reads at no address":
                ctypes.string_at(0)
            case "prints 100 MB":
                for stream in (sys.stdout, sys.stderr) * 500:
                    stream.write(("x" * 999 + "\n") * 100)
            case "returns NaN":
                return logits * float("nan")
        return logits


def fill_container() -> None:
    """Exceed the memory limit of a control group, so that the kernel kills this process."""
    group = CONTAINERS / f"misbehaving-{os.getpid()}"
    group.mkdir()
    (group / "memory.limit_in_bytes").write_text(str(300 * 10**6))
    (group / "cgroup.procs").write_text(str(os.getpid()))
    tensors = [torch.ones(25_000_000) for _ in range(100)]
    del tensors


def allocate(gigabytes: int) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * os.sysconf("SC_PAGE_SIZE") + 10**9
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    tensors = [torch.ones(25_000_000) for _ in range(10 * gigabytes)]
    del tensors


class MisbehavingSoftmax(PointwiseSoftmax):
    def __init__(self, shape: LayerShape, does: str) -> None:
        super().__init__(shape, Misbehaving(does))
