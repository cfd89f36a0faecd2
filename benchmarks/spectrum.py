"""The streamed spectrum beside numpy's SVD, on the log-P matrix of a gss layer with random weights.

    python -m benchmarks.spectrum           16,000 x 4,000: seconds and peak memory of each method,
    largest error python -m benchmarks.spectrum --ptb     82,430 x 10,000, the size of PTB's test
    set: the Gram method alone

Legend: N rows (contexts), V vocabulary, D width.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.side_by_side import compare, print_table
from trainables.measurements import (
    Method,
    log_p_spectrum,
    matrix_spectrum,
    press_rank,
    press_tolerance,
    spectrum_stream,
)

ROWS, COLUMNS, WIDTH = 16_000, 4_000, 64
PTB_ROWS, PTB_COLUMNS, PTB_WIDTH = 82_430, 10_000, 400
CHUNK = 2_000
K = 1.5
SPREAD = 0.5
"""Standard deviation of the logits: so small that the spectrum crosses the Press tolerance."""


def log_p_chunks(rows: int, columns: int, width: int) -> Iterator[NDArray[np.float32]]:
    """log P of gss(c = 0, k = 1.5) for random contexts and weights, in float32 and chunks of CHUNK
    rows."""
    random = np.random.default_rng(2021)
    weight_VD = random.standard_normal((columns, width), dtype=np.float32) * np.float32(
        SPREAD / width**0.5
    )
    bias_V = random.standard_normal(columns, dtype=np.float32)
    for start in range(0, rows, CHUNK):
        hidden_ND = random.standard_normal((min(CHUNK, rows - start), width), dtype=np.float32)
        logits_NV = hidden_ND @ weight_VD.T + bias_V
        bent_NV = K * logits_NV - (K - 1) * np.logaddexp(logits_NV, np.float32(0))
        yield (bent_NV - np.log(np.exp(bent_NV).sum(axis=1, keepdims=True))).astype(
            np.float32, copy=False
        )


def log_p_matrix() -> NDArray[np.float32]:
    """The ROWS x COLUMNS matrix of the side-by-side runs."""
    return np.concatenate(list(log_p_chunks(ROWS, COLUMNS, WIDTH)))


def prepare_numpy() -> Callable[[], object]:
    """The reference: numpy's SVD of the same matrix in float64, no singular vectors."""
    matrix_NV = log_p_matrix().astype(np.float64)
    return lambda: np.linalg.svd(matrix_NV, compute_uv=False)


def prepare_gram() -> Callable[[], object]:
    """The streamed Gram matrix."""
    return _prepare_stream("gram")


def prepare_qr() -> Callable[[], object]:
    """The streamed QR."""
    return _prepare_stream("qr")


def _prepare_stream(method: Method) -> Callable[[], object]:
    matrix_NV = log_p_matrix()
    matrix_spectrum(
        matrix_NV[:100, :100], method=method
    )  # loads the libraries, as a trial has long done
    chunks = np.split(matrix_NV, range(CHUNK, ROWS, CHUNK))
    return lambda: log_p_spectrum(chunks, rows=ROWS, columns=COLUMNS, method=method)


def print_errors() -> None:
    """Print the largest relative difference from numpy's float64 SVD above the Press tolerance, by
    method.

    Raises AssertionError where it exceeds 1e-6 or the Press rank is another one.
    """
    matrix_NV = log_p_matrix()
    reference = np.linalg.svd(matrix_NV.astype(np.float64), compute_uv=False)
    above = reference > press_tolerance(reference, rows=ROWS, columns=COLUMNS)
    print(
        f"\n{np.count_nonzero(above)} of {len(reference)} singular values are above the Press "
        f"tolerance"
    )
    methods: tuple[Method, ...] = ("gram", "qr")
    for method in methods:
        spectrum = matrix_spectrum(matrix_NV, method=method)
        error = np.abs(spectrum.singular_values / reference - 1)[above].max()
        print(f"{method:<6} largest relative difference {error:.2g}")
        assert error <= 1e-6 and press_rank(spectrum) == np.count_nonzero(above), (
            "not numpy's singular values"
        )


def run_ptb(method: Method) -> None:
    """Print the seconds of the whole PTB test set, without those of making its rows, and this
    process' peak memory."""
    stream = spectrum_stream(method, PTB_COLUMNS)
    adding_s = 0.0
    begin = time.perf_counter()
    for chunk_NV in log_p_chunks(PTB_ROWS, PTB_COLUMNS, PTB_WIDTH):
        start = time.perf_counter()
        stream.update(chunk_NV)
        adding_s += time.perf_counter() - start
    start = time.perf_counter()
    spectrum = stream.finish()
    end = time.perf_counter()
    making_s = start - begin - adding_s
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{method} {PTB_ROWS:,} x {PTB_COLUMNS:,}, Press rank {press_rank(spectrum)}: "
        f"{adding_s + end - start:.1f} s = "
        f"{adding_s:.1f} s adding rows + {end - start:.1f} s singular values; making the rows took "
        f"{making_s:.1f} s "
        f"more; peak of the whole process {peak_mib:.0f} MiB"
    )


def main() -> None:
    """Run the side-by-side comparison, or the full size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ptb", action="store_true", help="run the full PTB size instead")
    parser.add_argument(
        "--method", choices=("gram", "qr"), default="gram", help="method of the --ptb run"
    )
    parser.add_argument("--rounds", type=int, default=3, help="timed runs of each variant")
    arguments = parser.parse_args()
    if arguments.ptb:
        run_ptb(arguments.method)
        return
    variants = {
        "numpy svd": prepare_numpy,
        "streamed gram": prepare_gram,
        "streamed qr": prepare_qr,
    }
    timings = compare(variants, rounds=arguments.rounds)
    print_table(f"Spectrum of {ROWS:,} x {COLUMNS:,} log P", timings, reference="numpy svd")
    print_errors()


if __name__ == "__main__":
    main()
