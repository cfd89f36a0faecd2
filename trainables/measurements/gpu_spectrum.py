"""The spectra of matrices on a GPU: what `GramSpectrum` does, with nothing copied to the CPU but
singular values.

The Gram matrices are added up in float64 one after another, as the product of one fills a GPU; the
eigenvalues of small ones, which do not, are taken together. Nothing here asks where the tensors
lie, so that it is tried on a CPU; there, `trainables.measurements.spectrum` is faster.

Shapes: N rows (contexts), V columns (vocabulary), n the narrower side, G matrices.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor

from trainables.device import free_bytes, on_gpu
from trainables.measurements.spectrum import Spectrum, bad_row_error, is_wide, require_squarable
from trainables.pulse import PULSE, SLOWEST_GPU_FLOPS

TOGETHER_BYTES = 2**28
"""Of Gram matrices whose eigenvalues are taken together; a larger one is alone."""
PANEL = 1024
"""Columns of a wide matrix that are converted to float64 at once."""


def fits_gpu(tensor: Tensor, *, rows: int, columns: int) -> bool:
    """Whether the tensor lies on a GPU that has the memory for this spectrum now: Gram matrix, a
    copy and as much for its eigenvalues, the rows of a wide matrix, and a few chunks of rows."""
    if not on_gpu(tensor):
        return False
    wide = is_wide(rows, columns)
    square = 8 * (rows if wide else columns) ** 2
    gathered = 2 * 4 * rows * columns if wide else 0  # and a copy of them
    return 3 * max(square, TOGETHER_BYTES) + gathered + 8 * 4 * 1024 * columns <= free_bytes()


def gpu_spectra(
    matrices: Sequence[Iterable[Tensor]], device: torch.device, *, rows: int, columns: int
) -> list[Spectrum | Exception]:
    """Of every matrix, which comes in chunks of rows on the device, `rows` in all, at least one; or
    what was raised on its way: UserError for a NaN, an infinity, or values too large or too small
    to be squared. Raises torch.OutOfMemoryError."""
    side = rows if is_wide(rows, columns) else columns
    together = max(1, TOGETHER_BYTES // (8 * side**2))
    spectra: list[Spectrum | Exception] = []
    for start in range(0, len(matrices), together):
        group = matrices[start : start + together]
        squares_Gnn = torch.zeros(len(group), side, side, dtype=torch.float64, device=device)
        spectra += _spectra(group, squares_Gnn, rows, columns)
        del squares_Gnn  # before the next ones
    return spectra


@torch.no_grad()
def _spectra(
    matrices: Sequence[Iterable[Tensor]], squares_Gnn: Tensor, rows: int, columns: int
) -> Iterator[Spectrum | Exception]:
    side, errors = squares_Gnn.shape[1], dict[int, Exception]()
    for index, chunks in enumerate(matrices):
        try:
            _add_gram(squares_Gnn[index], chunks, rows, columns)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            errors[index] = error
            squares_Gnn[index].zero_()
    PULSE.touch(quiet_s=2 * len(matrices) * side**3 / SLOWEST_GPU_FLOPS)
    squared_Gn = torch.linalg.eigvalsh(squares_Gnn).flip(1)
    sigma_Gn = squared_Gn[:, : min(rows, columns)].clamp(min=0.0).sqrt().cpu().numpy()
    for index, sigma_n in enumerate(sigma_Gn):
        yield errors.get(index) or Spectrum(sigma_n, rows, columns, "gram")


def _add_gram(square_nn: Tensor, chunks: Iterable[Tensor], rows: int, columns: int) -> None:
    """The device is waited for once, at the end. Raises UserError."""
    magnitudes, gathered = list[Tensor](), list[Tensor]()
    for chunk_NV in chunks:
        low_N, high_N = chunk_NV.aminmax(dim=1)
        magnitudes.append(torch.maximum(-low_N, high_N))  # NaN where a row has one
        if len(square_nn) < columns:
            gathered.append(chunk_NV)
        else:
            double_NV = chunk_NV.double()
            square_nn.addmm_(double_NV.T, double_NV)
    magnitude_N = torch.cat(magnitudes)
    assert len(magnitude_N) == rows, f"{len(magnitude_N)} rows came, {rows} were promised"
    if gathered:
        for panel_NP in torch.cat(gathered).split(PANEL, dim=1):
            double_NP = panel_NP.double()
            square_nn.addmm_(double_NP, double_NP.T)
    PULSE.touch(quiet_s=2 * rows * columns * len(square_nn) / SLOWEST_GPU_FLOPS)
    largest = float(magnitude_N.max())
    if not math.isfinite(largest):
        raise bad_row_error(int((~magnitude_N.isfinite()).int().argmax()))
    require_squarable(largest)
