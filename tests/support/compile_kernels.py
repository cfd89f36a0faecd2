"""Compile the kernels of the cross-entropy to a GPU's machine code, for which Triton needs no GPU.

`python -m tests.support.compile_kernels` prints the name of every kernel that it compiled. Its interpreter runs much
that the compiler refuses.
"""

from __future__ import annotations

from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from trainables.output_layers import kernels

HOPPER = GPUTarget("cuda", 90, 32)
TYPES = {"targets": "*i64", "sums": "*i64", "rows": "i32", "columns": "i32", "stride": "i32", "knots": "i32"}


def compile_kernel(kernel: Any, product_type: str, **constants: object) -> None:
    """With such constants, for products of such a type of numbers."""
    names = kernel.arg_names
    types = {**dict.fromkeys(names, "*fp32"), **TYPES, "product": product_type, "inverse_width": "fp32"}
    signature = {name: "constexpr" if name in constants else types[name] for name in names}
    source = ASTSource(kernel, signature, {(names.index(name),): value for name, value in constants.items()})
    compiled = triton.compile(source, target=HOPPER)
    assert compiled.asm["cubin"]
    print(kernel.__name__, product_type, *constants.values())


def main() -> None:
    """Those of functions that need more than the identity, and of both types that products have."""
    for kind, product_type in (("smooth", "*bf16"), ("piecewise", "*fp32")):
        sums = kind == "piecewise"
        compile_kernel(kernels._forward, product_type, KIND=kind, BLOCK=kernels.MOST_COLUMNS)
        block = kernels.MOST_COLUMNS // 2
        compile_kernel(kernels._backward, product_type, KIND=kind, SUMS=sums, BLOCK=block, ROWS=kernels.ROWS)


if __name__ == "__main__":
    main()
