"""Float64 Gram matrix and spectrum of a log-P matrix that arrives in chunks of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import TypeVar

import torch
from torch import Tensor

from trainables.device import forget_cache, free_bytes, on_gpu
from trainables.language_model import LanguageModel
from trainables.measurements.log_probabilities import log_probability_chunks
from trainables.measurements.spectrum import (
    Spectrum,
    SpectrumStream,
    bad_row_error,
    is_wide,
    log_p_spectrum,
)
from trainables.pulse import PULSE, SLOWEST_GPU_FLOPS

BLOCK_VALUES, GPU_BLOCK_VALUES = 2**19, 2**25
"""Matrix entries per block. On a CPU, a block fits in the cache."""
PANEL = 1024

Chunks = Callable[[], Iterable[Tensor]]
"""A function that returns the row chunks of a log-P matrix, the same at every call."""
Result = TypeVar("Result")


def compute_in_memory(
    compute: Callable[[Chunks], Result], model: LanguageModel, contexts_NC: Tensor, *, squares: int
) -> Result:
    """Apply `compute` to the log-P matrix at `contexts_NC`, and return the result.

    Runs on the model's device, or on the CPU if GPU memory cannot hold `squares` float64 matrices,
    n x n.
    """
    chunks = partial(log_probability_chunks, model, contexts_NC)
    weight_VD = model.embedding_VD
    if on_gpu(weight_VD):
        if _gpu_bytes(len(contexts_NC), len(weight_VD), squares) <= free_bytes():
            with suppress(torch.OutOfMemoryError):
                return compute(chunks)
        forget_cache(str(weight_VD.device))
    return compute(lambda: (chunk_NV.cpu() for chunk_NV in chunks()))


def _gpu_bytes(rows: int, columns: int, squares: int) -> int:
    wide = is_wide(rows, columns)
    side = rows if wide else columns
    chunk_values = 2 * rows * columns if wide else 0
    return 8 * (squares * side**2 + chunk_values + 8 * GPU_BLOCK_VALUES)


def spectrum_of_chunks(
    chunks: Iterable[Tensor], *, rows: int, columns: int, centre: bool
) -> Spectrum:
    """Return the spectrum of a matrix in row chunks, after subtracting row means if `centre`.

    Raises UserError with the row of a NaN or an infinity.
    """
    remaining = iter(chunks)
    first_NV = next(remaining)
    chunks = chain([first_NV], remaining)
    if not on_gpu(first_NV):
        if centre:
            chunks = (centred(chunk_NV.double()) for chunk_NV in chunks)
        arrays = (chunk_NV.numpy() for chunk_NV in chunks)
        return log_p_spectrum(arrays, rows=rows, columns=columns)
    square_nn = gram(finite(chunks), rows, columns, centre=centre)
    PULSE.touch(quiet_s=2 * len(square_nn) ** 3 / SLOWEST_GPU_FLOPS)
    squares_n = torch.linalg.eigvalsh(square_nn).flip(0)[: min(rows, columns)]
    return Spectrum(squares_n.clamp(min=0.0).sqrt().cpu().numpy(), rows, columns, "gram")


def gram(chunks: Iterable[Tensor], rows: int, columns: int, *, centre: bool) -> Tensor:
    """Return the float64 Gram matrix of the log-P matrix L: L^T L, or L L^T for a wide L.

    All chunks of a wide L stay in memory. On a CPU, only the lower triangle is valid, in Fortran
    order.
    """
    convert = centred if centre else Tensor.double
    if not is_wide(rows, columns):
        return _sum_of_squares(map(convert, blocks(chunks)), columns)
    row_chunks = list(chunks)
    mean_N1 = torch.cat(
        [chunk_NV.mean(1, keepdim=True, dtype=torch.float64) for chunk_NV in row_chunks]
    )
    if not centre:
        mean_N1.zero_()
    panels = zip(*(chunk_NV.split(PANEL, dim=1) for chunk_NV in row_chunks), strict=True)
    parts = ((torch.cat(panel).double() - mean_N1).T.contiguous() for panel in panels)
    return _sum_of_squares(parts, rows)


def _sum_of_squares(parts: Iterable[Tensor], side: int) -> Tensor:
    stream, square_nn = SpectrumStream("gram", side), None
    for part_Mn in parts:
        if not on_gpu(part_Mn):
            stream.update(part_Mn.numpy())  # fills one triangle only
        elif square_nn is None:
            square_nn = part_Mn.T @ part_Mn
        else:
            square_nn.addmm_(part_Mn.T, part_Mn)
    return torch.from_numpy(stream.gram()) if square_nn is None else square_nn


def finite(chunks: Iterable[Tensor]) -> Iterator[Tensor]:
    """Yield the chunks. Raises UserError with the row of a NaN or an infinity."""
    row = 0
    for chunk_NV in chunks:
        PULSE.touch()
        finite_N = chunk_NV.isfinite().all(1)
        if not finite_N.all():
            raise bad_row_error(row + int((~finite_N).int().argmax()))
        row += len(chunk_NV)
        yield chunk_NV


def blocks(chunks: Iterable[Tensor], *, least_rows: int = 16) -> Iterator[Tensor]:
    """Yield float64 blocks of at least `least_rows` rows; a chunk's last block may be shorter."""
    for chunk_NV in chunks:
        values = GPU_BLOCK_VALUES if on_gpu(chunk_NV) else BLOCK_VALUES
        for block_NV in chunk_NV.split(max(least_rows, values // chunk_NV.shape[1])):
            PULSE.touch()
            yield block_NV.double()


def centred(block_NV: Tensor) -> Tensor:
    """Return the rows minus their means."""
    return block_NV - block_NV.mean(1, keepdim=True)
