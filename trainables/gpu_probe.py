"""Test of this host's GPUs: `python -m trainables.gpu_probe` prints JSON."""

from __future__ import annotations

from contextlib import suppress

import torch

from trainables.device import Graphs, is_occupied, triton_note
from trainables.errors import first_line
from trainables.runtime import GpuProbe


def probe() -> GpuProbe:
    """Try a matrix product and a CUDA graph on each GPU, and a Triton kernel on the current one."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    faults = {index: gpu_fault(index) for index in range(count)}
    indices = [index for index, fault in faults.items() if fault is None]
    return GpuProbe(
        usable=len(indices),
        torch=torch.__version__,
        cuda=torch.version.cuda,
        capability=min(
            (torch.cuda.get_device_capability(index) for index in indices), default=None
        ),
        faults=tuple(dict.fromkeys(fault for fault in faults.values() if fault is not None)),
        triton=_triton_note() if 0 in indices else None,
    )


def _triton_note() -> str | None:
    with suppress(RuntimeError):  # occupied
        return triton_note("cuda")
    return None


def gpu_fault(index: int) -> str | None:
    """Return why trials would fail on this GPU, with the fix, or None."""
    name = torch.cuda.get_device_name(index)
    try:
        with torch.cuda.device(index):
            ones = torch.ones(64, 64, device="cuda")
            graphs, result = Graphs(), torch.empty_like(ones)

            def work() -> None:
                torch.mm(ones, ones, out=result)

            graphs.run(work)
            replay = graphs.captured(work)
            result.zero_()
            replay()
            if not bool((result == 64).all()):
                return f"the GPU {name} computes wrong products: see its errors with nvidia-smi"
    except RuntimeError as error:
        if is_occupied(error):
            return None
        return (
            f"the GPU {name} fails at its first product ({first_line(error)}): check nvidia-smi, "
            f"and whether torch {torch.__version__} supports this GPU (docs/gpus.md)"
        )
    return None


if __name__ == "__main__":
    print(probe().model_dump_json())
