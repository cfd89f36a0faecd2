"""Benchmark the spectrum and KL rank of a gss layer's log-P matrix, with random weights.

    python -m benchmarks.ranks            spectrum of 16,000 x 4,000 and its error, by method
    python -m benchmarks.ranks --ptb      82,430 x 10,000, the size of PTB's test set
    python -m benchmarks.ranks --kl       KL ranks of 16,000 x 4,000 next to its spectrum
    python -m benchmarks.ranks --hard     KL ranks in the thousands

Legend: N rows (contexts), V vocabulary, D width.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.loss import Prepare, compare, print_table
from trainables.measurements import (
    Method,
    PeakMemory,
    SpectrumStream,
    kl_rank_metrics,
    kl_ranks,
    log_p_spectrum,
    matrix_spectrum,
    press_rank,
    press_tolerance,
)

ROWS, COLUMNS = 16_000, 4_000
PTB_ROWS, PTB_COLUMNS, PTB_WIDTH = 82_430, 10_000, 400
CHUNK = 2_000
Shape = tuple[int, float, float, float]
"""Width, k, and the standard deviations of logits and bias."""
# Some singular values of USUAL are below the Press tolerance, and some above.
USUAL: Shape = (64, 1.5, 0.5, 1.0)
# KL ranks of HARD are in the thousands.
HARD: Shape = (256, 3.0, 2.5, 0.0)


def log_p_chunks(rows: int, columns: int, shape: Shape) -> Iterator[NDArray[np.float32]]:
    """Yield log P of gss(c = 0, k) for random contexts and weights, CHUNK rows at a time."""
    width, k, spread, bias = shape
    random = np.random.default_rng(2021)
    weight_VD = random.standard_normal((columns, width), dtype=np.float32) * np.float32(
        spread / width**0.5
    )
    bias_V = random.standard_normal(columns, dtype=np.float32) * np.float32(bias)
    for start in range(0, rows, CHUNK):
        hidden_ND = random.standard_normal((min(CHUNK, rows - start), width), dtype=np.float32)
        logits_NV = hidden_ND @ weight_VD.T + bias_V
        softplus_NV = np.logaddexp(logits_NV, np.float32(0))
        bent_NV = np.float32(k) * logits_NV - np.float32(k - 1) * softplus_NV
        yield bent_NV - np.log(np.exp(bent_NV).sum(axis=1, keepdims=True))


def log_p_matrix(shape: Shape) -> NDArray[np.float32]:
    return np.concatenate(list(log_p_chunks(ROWS, COLUMNS, shape)))


def prepare_numpy() -> Callable[[], object]:
    matrix_NV = log_p_matrix(USUAL).astype(np.float64)
    return lambda: np.linalg.svd(matrix_NV, compute_uv=False)


def prepare_spectrum(shape: Shape, method: Method = "gram") -> Callable[[], object]:
    matrix_NV = log_p_matrix(shape)
    matrix_spectrum(matrix_NV[:100, :100], method=method)  # loads the libraries
    chunks = np.split(matrix_NV, range(CHUNK, ROWS, CHUNK))
    return lambda: log_p_spectrum(chunks, rows=ROWS, columns=COLUMNS, method=method)


def prepare_kl_rank(shape: Shape) -> Callable[[], object]:
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    matrix = torch.from_numpy(log_p_matrix(shape))
    kl_ranks(lambda: [matrix[:100, :100]], rows=100, columns=100)
    return lambda: kl_ranks(lambda: matrix.split(1024), rows=ROWS, columns=COLUMNS)


def print_errors() -> None:
    """Print each method's largest relative error above the Press tolerance.

    Raises AssertionError if an error exceeds 1e-6 or a Press rank differs from numpy's.
    """
    matrix_NV = log_p_matrix(USUAL)
    reference = np.linalg.svd(matrix_NV.astype(np.float64), compute_uv=False)
    mask = reference > press_tolerance(reference, rows=ROWS, columns=COLUMNS)
    print(f"\n{np.count_nonzero(mask)} singular values are above the Press tolerance")
    methods: tuple[Method, ...] = ("gram", "qr")
    for method in methods:
        spectrum = matrix_spectrum(matrix_NV, method=method)
        error = np.abs(spectrum.singular_values / reference - 1)[mask].max()
        print(f"{method:<6} largest relative difference {error:.2g}")
        assert error <= 1e-6 and press_rank(spectrum) == np.count_nonzero(mask)


def run_ptb() -> None:
    stream, memory, adding_s = SpectrumStream("gram", PTB_COLUMNS), PeakMemory(), 0.0
    for chunk_NV in log_p_chunks(PTB_ROWS, PTB_COLUMNS, (PTB_WIDTH, *USUAL[1:])):
        start = time.perf_counter()
        stream.update(chunk_NV)
        adding_s += time.perf_counter() - start
    start = time.perf_counter()
    rank = press_rank(stream.finish())
    finish_s = time.perf_counter() - start
    print(
        f"{PTB_ROWS:,} x {PTB_COLUMNS:,}, Press rank {rank}: {adding_s:.1f} s to add rows, "
        f"{finish_s:.1f} s for singular values; peak memory {memory.peak_mib():.0f} MiB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ptb", action="store_true", help="spectrum at the size of PTB's test set")
    parser.add_argument("--kl", action="store_true", help="KL ranks")
    parser.add_argument("--hard", action="store_true", help="KL ranks of a harder matrix")
    parser.add_argument(
        "--threads", type=int, default=1, help="threads of torch and BLAS for KL ranks"
    )
    parser.add_argument("--rounds", type=int, default=3, help="timed runs of each variant")
    options = parser.parse_args()
    title = f"{ROWS:,} x {COLUMNS:,} log P"
    if options.ptb:
        run_ptb()
    elif options.kl or options.hard:
        for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ[variable] = str(options.threads)  # the timed processes read these
        shape = HARD if options.hard else USUAL
        variants: dict[str, Prepare] = {
            "spectrum": partial(prepare_spectrum, shape),
            "KL rank": partial(prepare_kl_rank, shape),
        }
        print_table(title, compare(variants, rounds=options.rounds, warmup=0), reference="spectrum")
        matrix = torch.from_numpy(log_p_matrix(shape))
        print(kl_rank_metrics(kl_ranks(lambda: matrix.split(1024), rows=ROWS, columns=COLUMNS)))
    else:
        variants = {
            "numpy svd": prepare_numpy,
            "streamed gram": partial(prepare_spectrum, USUAL),
            "streamed qr": partial(prepare_spectrum, USUAL, "qr"),
        }
        print_table(title, compare(variants, rounds=options.rounds), reference="numpy svd")
        print_errors()


if __name__ == "__main__":
    main()
