# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"
"""The smallest Triton kernel. If it cannot run (no C compiler, for example), no kernel can."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def _write_one(element) -> None:
    tl.store(element, 1.0)


def launch(device: torch.device) -> None:
    """Compile, run and check the kernel. Raises errors of Triton, the compiler and the GPU."""
    element = torch.zeros(1, device=device)
    _write_one[(1,)](element)
    if element.item() != 1.0:
        raise RuntimeError(f"a kernel wrote {element.item():g} instead of 1")
