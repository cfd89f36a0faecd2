"""Code that differs between CPU and GPU, except `trainables.config.chunk_rows`.

Any device but the CPU counts as a GPU, so "meta" tensors take the GPU's path on any host.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Literal
from weakref import WeakSet

import torch
from torch import Tensor

from trainables.errors import first_line

Precision = Literal["float32", "tf32", "bf16"]
GLOBAL, GLOBAL_CUDA = "random.global", "random.global_cuda"
"""Checkpoint keys for the states of torch's global random generators."""


def on_gpu(device: str | torch.device | Tensor) -> bool:
    """Return True for a GPU."""
    target = device.device if isinstance(device, Tensor) else torch.device(device)
    return target.type != "cpu"


def runs_triton(device: torch.device) -> bool:
    """Return whether Triton kernels run on the device; the first call launches one to test this."""
    return device.type == "cuda" and triton_problem("cuda") is None


@functools.cache
def triton_problem(device: str) -> str | None:
    """Return why Triton kernels fail on this GPU, or None. Tested once per process.

    Raises RuntimeError if the GPU is occupied, which makes the test inconclusive.
    """
    try:
        from trainables.one_element_kernel import launch

        launch(torch.device(device))
    except Exception as error:
        if is_occupied(error):
            raise
        return first_line(error)
    return None


def is_occupied(error: Exception) -> bool:
    """Return whether the error means that another program uses the GPU or its memory."""
    return any(words in str(error) for words in ("out of memory", "busy or unavailable"))


def triton_note(device: str) -> str | None:
    """Return a clause for the user if trials on this GPU train without Triton kernels, or None."""
    problem = triton_problem(device) if on_gpu(device) else None
    return problem and (
        "trains without Triton kernels, slower and with more memory, because a test launch failed "
        f"({problem}): install gcc and Python's headers (python3-dev)"
    )


@contextmanager
def products_in(precision: Precision, device: str) -> Iterator[None]:
    """Set the precision of a GPU's matrix products inside the context, then restore torch's flags.

    "tf32" rounds factors of float32 products to TF32 (10 bits of mantissa). Products of bf16
    factors are summed in float32.
    """
    # By default, torch rounds only an LSTM's factors to TF32, and may sum bf16 products in bf16.
    if not on_gpu(device):
        yield
        return
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    rounding = "tf32" if precision == "tf32" else "ieee"
    flags: list[tuple[Any, str, Any]] = [
        (owner, "fp32_precision", rounding)
        for owner in (matmul, cudnn.conv, cudnn.rnn)  # type: ignore[attr-defined]
    ]
    flags.append((matmul, "allow_bf16_reduced_precision_reduction", False))
    old_flags = [(owner, name, getattr(owner, name)) for owner, name, _ in flags]
    try:
        for flag in flags:
            setattr(*flag)
        yield
    finally:
        for flag in old_flags:
            setattr(*flag)


def network_dtype(precision: Precision, weights: Tensor) -> torch.dtype:
    """Return the dtype of the products between embedding and output layer; a CPU ignores bf16."""
    return torch.bfloat16 if precision == "bf16" and on_gpu(weights) else weights.dtype


ALIGNMENT = 8
"""Rows of factors start at multiples of this many elements: 16 bytes in bf16."""


def aligned_empty(like: Tensor, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Return an empty tensor whose rows start at multiples of 16 bytes, for faster GPU products."""
    *rows, width = shape
    return like.new_empty(*rows, width + -width % ALIGNMENT, dtype=dtype)[..., :width]


def aligned(factor: Tensor, dtype: torch.dtype, mask: Tensor | None = None) -> Tensor:
    """Return the factor in `dtype`, times `mask`, with aligned rows; a copy only if needed."""
    if mask is None and factor.dtype == dtype and factor.shape[-1] % ALIGNMENT == 0:
        return factor
    copy = aligned_empty(factor, factor.shape, dtype)
    return copy.copy_(factor) if mask is None else torch.mul(factor, mask, out=copy)


def batched_product(left: Tensor, right: Tensor, dtype: torch.dtype) -> Tensor:
    """Return left @ right in `dtype`. A GPU does not round the product to the factors' dtype."""
    if left.dtype != dtype and on_gpu(left):
        return torch.bmm(left, right, out_dtype=dtype)
    return torch.bmm(left, right).to(dtype)


def add_batched_product_(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add left @ right to `total`. A GPU does not round the product to the factors' dtype."""
    if left.dtype == total.dtype:
        total.baddbmm_(left, right)
    elif on_gpu(left):
        torch.baddbmm(total, left, right, out_dtype=total.dtype, out=total)
    else:
        total.add_(torch.bmm(left, right))


def repeat_bits(deterministic: bool) -> None:
    """Turn deterministic GPU kernels on or off; CPU kernels are always deterministic.

    torch warns about a kernel without a deterministic version.
    """
    if deterministic:
        os.environ.setdefault(
            "CUBLAS_WORKSPACE_CONFIG", ":4096:8"
        )  # read when cuBLAS is first used
    # `use_deterministic_algorithms` does the same, but imports the compiler: see
    # `trainables.training.optimizers`.
    torch.set_deterministic_debug_mode("warn" if deterministic else "default")
    # The module gets this attribute by a property, which the type checker does not see.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]


def generator(seed: int, device: str) -> torch.Generator:
    """Return a seeded generator on the device."""
    return torch.Generator(device).manual_seed(seed)


def global_random_states(device: str) -> dict[str, Tensor]:
    """Return the states of torch's global generators, which custom output layers may use."""
    states = {GLOBAL: torch.get_rng_state()}
    return states | {GLOBAL_CUDA: torch.cuda.get_rng_state()} if on_gpu(device) else states


def set_global_random_states(states: dict[str, Tensor], device: str) -> None:
    """Restore states from `global_random_states`."""
    torch.set_rng_state(states[GLOBAL].cpu())
    if on_gpu(device) and GLOBAL_CUDA in states:
        torch.cuda.set_rng_state(states[GLOBAL_CUDA].cpu())


def numbers(vector: Tensor) -> Sequence[Any]:
    """Return the elements: floats on a CPU, for speed; tensors on a GPU, to avoid a wait."""
    return vector.unbind() if on_gpu(vector) else vector.tolist()


def add_multiple_(total: Tensor, values: Tensor, factor: Any) -> None:
    """Add `values` times `factor`, an element from `numbers`, to `total`."""
    if isinstance(factor, Tensor):
        total.addcmul_(values, factor)
    else:
        total.add_(values, alpha=factor)


def write_numbers(vector: Tensor, numbers: Sequence[float]) -> None:
    """Copy `numbers` to `vector`, on a GPU asynchronously."""
    # torch does not reuse the source's pinned memory before the copy is done.
    vector.copy_(
        torch.tensor(numbers, dtype=vector.dtype, pin_memory=vector.is_cuda), non_blocking=True
    )


class Graphs:
    """CUDA graphs in one memory pool, of work on tensors at fixed addresses.

    The work must not copy from the host, read back or draw random numbers. No graph may read what
    another graph left in the pool.

    The graphs are freed together, and nothing else uses their stream. Freeing one graph also frees
    the stream's cuBLAS workspace, to which other graphs still write (pytorch 193402).
    """

    _live: ClassVar = WeakSet[Any]()

    def __init__(self) -> None:
        if not Graphs._live:
            # Workspaces of freed streams: torch keeps them until 2.13.
            torch._C._cuda_clearCublasWorkspaces()
        Graphs._live.add(self)
        self._pool, self._stream = torch.cuda.graph_pool_handle(), torch.cuda.Stream()
        self._graphs = list[torch.cuda.CUDAGraph]()

    def run(self, work: Callable[[], None]) -> None:
        """Run the work without a graph; this must precede its capture."""
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            work()
        torch.cuda.current_stream().wait_stream(self._stream)

    def captured(self, work: Callable[[], None]) -> Callable[[], None]:
        """Capture the work in a graph; return a function that replays it."""
        graph = torch.cuda.CUDAGraph()
        self._graphs.append(graph)  # also if its capture fails
        # Other threads of the process may keep using the GPU. A failed capture does not restore the
        # previous stream, hence the first context.
        with (
            torch.cuda.stream(self._stream),
            torch.cuda.graph(
                graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"
            ),
        ):
            work()
        return graph.replay


def graphs_on(device: torch.device) -> Graphs | None:
    """Return new graphs; None on a CPU."""
    return Graphs() if device.type == "cuda" else None


def wait(device: str) -> None:
    """Wait for the device's queued work. Raises RuntimeError if the GPU is lost."""
    if on_gpu(device):
        torch.cuda.synchronize()


def forget_cache(device: str) -> None:
    """Release torch's cached GPU memory."""
    if on_gpu(device):
        torch.cuda.empty_cache()


def free_bytes() -> int:
    """Release torch's cache and return the GPU's free bytes."""
    torch.cuda.empty_cache()
    count, _ = torch.cuda.mem_get_info()
    return int(count)


def gpu_name() -> str:
    """Return the GPU's model."""
    return torch.cuda.get_device_name()


def singular_values(matrices: Tensor) -> Tensor:
    """Return the singular values, descending."""
    # QR on a GPU, because the default (Jacobi) stops at a tolerance.
    return torch.linalg.svdvals(matrices, driver="gesvd" if on_gpu(matrices) else None)


def running_sum(values_K: Tensor) -> Tensor:
    """Return the float64 cumulative sum along the last axis.

    It is bitwise reproducible unless a GPU records it for autograd.
    """
    # A GPU's scan of floats depends on the order of blocks; a scan of integers does not.
    has_gradient = torch.is_grad_enabled() and values_K.requires_grad
    return (
        integer_running_sum(values_K)
        if on_gpu(values_K) and not has_gradient
        else values_K.cumsum(-1)
    )


def integer_running_sum(values_K: Tensor) -> Tensor:
    """Return the cumulative sum, with values rounded to 2^-60 of the sum of absolute values."""
    # Integers in this unit cannot overflow, and are finer than float64.
    unit = values_K.abs().sum(-1, keepdim=True).clamp(min=1e-300) * 2.0**-60
    return (values_K / unit).round().long().cumsum(-1).double() * unit
