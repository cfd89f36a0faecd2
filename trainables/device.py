"""What torch is asked differently on a CPU and on a GPU; only the size of a chunk, which a plan
needs without torch, is elsewhere (`trainables.config.chunk_rows`).

Devices are named as in `Runtime`, "cpu" or "cuda". Whatever is no CPU is taken for a GPU, so that
torch's device "meta", which has shapes and dtypes but no numbers, goes a GPU's way on a machine
without one."""

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
"""The states of torch's own generators, in a checkpoint."""


def on_gpu(device: str | torch.device | Tensor) -> bool:
    """Whether a device, or what a tensor lies on, is a GPU."""
    where = device.device if isinstance(device, Tensor) else torch.device(device)
    return where.type != "cpu"


def runs_triton(device: torch.device) -> bool:
    """Whether kernels written in Triton run there: on a GPU, if one launch succeeded in this
    process."""
    return device.type == "cuda" and triton_problem("cuda") is None


@functools.cache
def triton_problem(device: str) -> str | None:
    """Why Triton's kernels do not run on this GPU, from a launch that is tried once a process; None
    if they do.

    Raises RuntimeError if the GPU is occupied, which says nothing of Triton.
    """
    try:
        from trainables.one_element_kernel import launch

        launch(torch.device(device))
    except Exception as error:
        if occupied(error):
            raise
        return first_line(error)
    return None


def occupied(error: Exception) -> bool:
    """Whether a GPU failed because another program has it, or its memory."""
    return any(words in str(error) for words in ("out of memory", "busy or unavailable"))


def triton_note(device: str) -> str | None:
    """A clause for a reader if trials on this device train without Triton's kernels; None if not,
    and for a CPU."""
    problem = triton_problem(device) if on_gpu(device) else None
    return problem and (
        "trains without Triton's kernels, slower and with more memory, because a first launch "
        f"failed ({problem}): install gcc and Python's headers (python3-dev)"
    )


@contextmanager
def products_in(precision: Precision, device: str) -> Iterator[None]:
    """Inside, a GPU's products of float32 tensors round their factors to TF32 (10 bits of mantissa)
    with "tf32", and not otherwise, and those of bf16 tensors are summed in float32; afterwards
    torch's flags are as before. On a CPU, float32 is always float32.

    By default torch rounds those of an LSTM and not those of other layers, and may add up parts of
    a sum in bf16."""
    if not on_gpu(device):
        yield
        return
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    rounded = "tf32" if precision == "tf32" else "ieee"
    flags: list[tuple[Any, str, Any]] = [
        (owner, "fp32_precision", rounded)
        for owner in (matmul, cudnn.conv, cudnn.rnn)  # type: ignore[attr-defined]
    ]
    flags.append((matmul, "allow_bf16_reduced_precision_reduction", False))
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in flags]
    try:
        for flag in flags:
            setattr(*flag)
        yield
    finally:
        for flag in before:
            setattr(*flag)


def network_dtype(precision: Precision, weights: Tensor) -> torch.dtype:
    """What the products between embedding and output layer are cast to; on a CPU the weights' own,
    as few have bf16."""
    return torch.bfloat16 if precision == "bf16" and on_gpu(weights) else weights.dtype


ALIGNMENT = 8
"""Numbers: 16 bytes of bf16."""


def aligned_empty(like: Tensor, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Return an empty tensor whose rows begin at multiples of 16 bytes: a GPU is slower at products
    of others."""
    *before, width = shape
    return like.new_empty(*before, width + -width % ALIGNMENT, dtype=dtype)[..., :width]


def aligned(factor: Tensor, dtype: torch.dtype, mask: Tensor | None = None) -> Tensor:
    """Return a product's factor with such rows, times the mask, rounded once to this dtype; a copy
    only if needed."""
    if mask is None and factor.dtype == dtype and factor.shape[-1] % ALIGNMENT == 0:
        return factor
    copy = aligned_empty(factor, factor.shape, dtype)
    return copy.copy_(factor) if mask is None else torch.mul(factor, mask, out=copy)


def batched_product(left: Tensor, right: Tensor, dtype: torch.dtype) -> Tensor:
    """Return left @ right in this dtype; a GPU does not round it to the factors' dtype first."""
    if left.dtype != dtype and on_gpu(left):
        return torch.bmm(left, right, out_dtype=dtype)
    return torch.bmm(left, right).to(dtype)


def add_batched_product_(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add left @ right to the total; a GPU does not round it to the factors' dtype first."""
    if left.dtype == total.dtype:
        total.baddbmm_(left, right)
    elif on_gpu(left):
        torch.baddbmm(total, left, right, out_dtype=total.dtype, out=total)
    else:
        total.add_(torch.bmm(left, right))


def repeat_bits(wanted: bool) -> None:
    """Have every GPU kernel of this process repeat its bits, or not; where one cannot, torch warns.
    A CPU's do."""
    if wanted:
        os.environ.setdefault(
            "CUBLAS_WORKSPACE_CONFIG", ":4096:8"
        )  # read when cuBLAS is first used
    # (`use_deterministic_algorithms` does the same, and imports the compiler: see
    # `trainables.training.optimizers`.)
    torch.set_deterministic_debug_mode("warn" if wanted else "default")
    # The module gets this attribute by a property, which the type checker does not see.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]


def generator(seed: int, device: str) -> torch.Generator:
    """A stream of random numbers that are drawn on the device."""
    return torch.Generator(device).manual_seed(seed)


def global_random_states(device: str) -> dict[str, Tensor]:
    """Of torch's own generators, from which output layers of a user's own may draw."""
    states = {GLOBAL: torch.get_rng_state()}
    return states | {GLOBAL_CUDA: torch.cuda.get_rng_state()} if on_gpu(device) else states


def set_global_random_states(states: dict[str, Tensor], device: str) -> None:
    """Go back to what `global_random_states` gave; on a CPU, it gave none of a GPU."""
    torch.set_rng_state(states[GLOBAL].cpu())
    if on_gpu(device) and GLOBAL_CUDA in states:
        torch.cuda.set_rng_state(states[GLOBAL_CUDA].cpu())


def seed_gpu(seed: int, device: str) -> None:
    """Start torch's own generator of a GPU from this seed; of a CPU there is nothing to do."""
    if on_gpu(device):
        torch.cuda.manual_seed(seed)


def numbers(vector: Tensor) -> Sequence[Any]:
    """The elements, for arithmetic with tensors: floats on a CPU, where they are faster, and on a
    GPU, which a float would have to be waited for, tensors."""
    return vector.unbind() if on_gpu(vector) else vector.tolist()


def add_multiple_(total: Tensor, values: Tensor, factor: Any) -> None:
    """Add `factor`, one of `numbers`, times the values."""
    if isinstance(factor, Tensor):
        total.addcmul_(values, factor)
    else:
        total.add_(values, alpha=factor)


def write_numbers(vector: Tensor, numbers: Sequence[float]) -> None:
    """Overwrite the vector. A GPU does so in its own time, from pages that torch gives to nobody
    else until then."""
    vector.copy_(
        torch.tensor(numbers, dtype=vector.dtype, pin_memory=vector.is_cuda), non_blocking=True
    )


class Graphs:
    """CUDA graphs of work on tensors that stay where they are, whose own memory is one pool: none
    of them needs what another one left there.

    Such work copies nothing from the host, reads nothing back and draws nothing. The graphs go all
    at once, and no others have their stream: the first one to go takes the workspace that cuBLAS
    has for its stream along, which the others would still write to (pytorch 193402)."""

    _alive: ClassVar = WeakSet[Any]()

    def __init__(self) -> None:
        if not Graphs._alive:
            # Of streams that are gone: torch keeps them until 2.13.
            torch._C._cuda_clearCublasWorkspaces()
        Graphs._alive.add(self)
        self._pool, self._stream = torch.cuda.graph_pool_handle(), torch.cuda.Stream()
        self._graphs = list[torch.cuda.CUDAGraph]()

    def run(self, work: Callable[[], None]) -> None:
        """Do the work as it stands, which comes before its capture."""
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            work()
        torch.cuda.current_stream().wait_stream(self._stream)

    def captured(self, work: Callable[[], None]) -> Callable[[], None]:
        """What will do the work, which is not done now."""
        graph = torch.cuda.CUDAGraph()
        self._graphs.append(graph)  # also where its capture fails
        # Other threads of the process may go on asking the GPU for things. A capture that cannot be
        # ended does not go back to the stream before, hence the first context.
        with (
            torch.cuda.stream(self._stream),
            torch.cuda.graph(
                graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"
            ),
        ):
            work()
        return graph.replay


def graphs_on(device: torch.device) -> Graphs | None:
    """None where there are none."""
    return Graphs() if device.type == "cuda" else None


def wait(device: str) -> None:
    """Until the device has done what it was given. Raises RuntimeError where a GPU is lost."""
    if on_gpu(device):
        torch.cuda.synchronize()


def forget_cache(device: str) -> None:
    """Give back the GPU's memory that torch keeps for what may come."""
    if on_gpu(device):
        torch.cuda.empty_cache()


def free_bytes() -> int:
    """What the GPU has left, after torch has given back what it keeps and does not use."""
    torch.cuda.empty_cache()
    free, _ = torch.cuda.mem_get_info()
    return int(free)


def gpu_name() -> str:
    """The GPU's model."""
    return torch.cuda.get_device_name()


def svd_driver(matrices: Tensor) -> str | None:
    """LAPACK's only, or on a GPU the QR algorithm, as Jacobi's, its default, stops at a
    tolerance."""
    return "gesvd" if on_gpu(matrices) else None


def running_sum(values_K: Tensor) -> Tensor:
    """Cumulative sum along the last axis in float64, the same bits every time, but where autograd
    follows it.

    A GPU's scan of floats depends on which block comes first; of integers it does not.
    """
    differentiated = torch.is_grad_enabled() and values_K.requires_grad
    return (
        integer_running_sum(values_K)
        if on_gpu(values_K) and not differentiated
        else values_K.cumsum(-1)
    )


def integer_running_sum(values_K: Tensor) -> Tensor:
    """In units of 2^-60 of the sum of absolute values, so that no sum can overflow; finer than
    float64."""
    unit = values_K.abs().sum(-1, keepdim=True).clamp(min=1e-300) * 2.0**-60
    return (values_K / unit).round().long().cumsum(-1).double() * unit
