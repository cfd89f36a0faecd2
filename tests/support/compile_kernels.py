"""Compile the kernels of the cross-entropy and of the LSTM cell to a GPU's machine code, for which Triton needs no GPU.

`python -m tests.support.compile_kernels` prints the name of every kernel that it compiled. Its interpreter runs much
that the compiler refuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from trainables.output_layers import kernels
from trainables.stack import cell_kernels

HOPPER = GPUTarget("cuda", 90, 32)
TYPES = {"targets": "*i64", "sums": "*i64", "rows": "i32", "columns": "i32", "stride": "i32", "knots": "i32"}
CELL_TYPES = dict.fromkeys(["width", *cell_kernels.STRIDES], "i32")


def compile_kernel(kernel: Any, types: Mapping[str, str], **constants: object) -> None:
    """With such constants, for arguments of such types; the others are pointers to float32."""
    names = kernel.arg_names
    signature = {name: "constexpr" if name in constants else types.get(name, "*fp32") for name in names}
    source = ASTSource(kernel, signature, {(names.index(name),): value for name, value in constants.items()})
    compiled = triton.compile(source, target=HOPPER)
    assert compiled.asm["cubin"]
    print(kernel.__name__, *constants.values())


def main() -> None:
    """Those of functions that need more than the identity, and of both types that products have."""
    for kind, product_type in (("smooth", "*bf16"), ("softcap", "*bf16"), ("piecewise", "*fp32")):
        types = {**TYPES, "product": product_type, "inverse_width": "fp32"}
        sums = kind == "piecewise"
        compile_kernel(kernels._forward, types, KIND=kind, BLOCK=kernels.MOST_COLUMNS)
        block = kernels.MOST_COLUMNS // 2
        compile_kernel(kernels._backward, types, KIND=kind, SUMS=sums, BLOCK=block, ROWS=kernels.ROWS)
    for product_type in ("*bf16", "*fp32"):
        types = {**CELL_TYPES, **dict.fromkeys(("sums", "h", "by_h", "by_sums"), product_type)}
        for kernel in (cell_kernels._forward, cell_kernels._backward):
            compile_kernel(kernel, types, BLOCK=cell_kernels.MOST_COLUMNS)


if __name__ == "__main__":
    main()
