"""Compile the kernels of the cross-entropy and of the LSTM cell to a GPU's machine code, for which Triton needs no GPU.

`python -m tests.support.compile_kernels` prints a line of JSON for each: its name, constants and architecture, and what
it takes of a multiprocessor. Triton's interpreter runs much that its compiler refuses.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from trainables.output_layers import kernels
from trainables.stack import cell_kernels

ARCHITECTURES = (80, 90)
PRODUCTS = ("*bf16", "*fp32")
TYPES = {"targets": "*i64", "sums": "*i64", "rows": "i32", "columns": "i32", "stride": "i32", "knots": "i32"}
CELL_TYPES = dict.fromkeys(["width", *cell_kernels.STRIDES], "i32")
ALIGNED = [["tt.divisibility", 16]]
"""What a launch says of pointers, and of a number that 16 divides."""
REGISTERS, MOST_WARPS = 65_536, 64
"""Of a multiprocessor."""
TOOLS = Path(triton.__file__).parent / "backends/nvidia/bin"


def compiled(
    kernel: Any, types: Mapping[str, str], constants: Mapping[str, object], architecture: int, warps: int
) -> dict[str, Any]:
    """What a kernel with these constants takes, for arguments of these types; the others are pointers to float32."""
    names = kernel.arg_names
    signature = {name: "constexpr" if name in constants else types.get(name, "*fp32") for name in names}
    aligned = {(names.index(name),): ALIGNED for name in names if signature[name].startswith("*") or name == "stride"}
    values = {(names.index(name),): value for name, value in constants.items()}
    code = triton.compile(
        ASTSource(kernel, signature, values, aligned),
        target=GPUTarget("cuda", architecture, 32),
        options={"num_warps": warps},
    ).asm["cubin"]
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        Path(file.name).write_bytes(code)
        usage, assembly = (
            subprocess.run([TOOLS / tool, option, file.name], capture_output=True, text=True, check=True).stdout
            for tool, option in (("cuobjdump", "-res-usage"), ("nvdisasm", "-c"))
        )
    registers, stack, local = (int(re.findall(rf"{name}:(\d+)", usage)[0]) for name in ("REG", "STACK", "LOCAL"))
    blocks = REGISTERS // (32 * warps * (registers + -registers % 8))
    return {
        "kernel": kernel.__name__,
        "constants": list(constants.values()),
        "architecture": architecture,
        "product": signature.get("product", signature.get("sums")),
        "registers": registers,
        "local": max(stack, local),
        "warps": min(MOST_WARPS, blocks * warps),
        "loads": sorted(set(re.findall(r"\bLDG\.E\S*", assembly))),
        "atomics_with_a_result": len(re.findall(r"\bATOMG?\.", assembly)),
    }


def every_kernel() -> Iterator[tuple[Any, Mapping[str, str], Mapping[str, object], int]]:
    """Kernel, types, constants and warps, as the launches have them at the paper's vocabularies and widths."""
    for kind, product_type in product(("identity", "smooth", "softcap", "piecewise"), PRODUCTS):
        types = {**TYPES, "product": product_type, "inverse_width": "fp32"}
        yield kernels._forward, types, {"KIND": kind, "BLOCK": kernels.MOST_COLUMNS}, kernels.WARPS
        sums = kind == "piecewise"
        backward = {"KIND": kind, "SUMS": sums, "BLOCK": kernels.MOST_COLUMNS // 2, "ROWS": kernels.ROWS}
        if not sums:
            types["sums"] = "*fp32"  # any pointer
        yield kernels._backward, types, backward, kernels.WARPS_WITH_SUMS if sums else kernels.WARPS
    for product_type in PRODUCTS:
        types = {**CELL_TYPES, **dict.fromkeys(("sums", "h", "by_h", "by_sums"), product_type)}
        for kernel in (cell_kernels._forward, cell_kernels._backward):
            yield kernel, types, {"BLOCK": cell_kernels.MOST_COLUMNS}, 4


if __name__ == "__main__":
    for architecture, (kernel, types, constants, warps) in product(ARCHITECTURES, every_kernel()):
        print(json.dumps(compiled(kernel, types, constants, architecture, warps)))
