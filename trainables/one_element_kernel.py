# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"
"""The smallest Triton kernel: what keeps it from running, such as a missing C compiler, keeps the
others."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def _write_one(element) -> None:
    tl.store(element, 1.0)


def launch(device: torch.device) -> None:
    """Compile the kernel, run it and check its result. Raises whatever Triton, the compiler or the
    GPU raise."""
    element = torch.zeros(1, device=device)
    _write_one[(1,)](element)
    if element.item() != 1.0:
        raise RuntimeError(f"a kernel wrote {element.item():g} where it was to write 1")
