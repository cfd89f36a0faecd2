"""The KL rank beside the spectrum of the same 16,000 x 4,000 log-P matrix, taking turns; seconds of
wall and processor.

    python -m benchmarks.kl_rank --threads 1            the matrix of `benchmarks.spectrum`: gss,
    width 64 python -m benchmarks.kl_rank --threads 1 --hard     one with KL ranks of thousands

Legend: N rows (contexts), V vocabulary, D width.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.side_by_side import compare, print_table
from benchmarks.spectrum import CHUNK, COLUMNS, ROWS, log_p_matrix
from trainables.measurements import kl_rank_metrics, kl_ranks, log_p_spectrum, matrix_spectrum

THREADS = "OMP_NUM_THREADS"
HARD_WIDTH, HARD_K, HARD_SPREAD = 256, 3.0, 2.5


def hard_matrix() -> NDArray[np.float32]:
    """log P of gss(c = 0, k = 3) at width 256, with logits spread so far that the bend acts on all
    of them."""
    random = np.random.default_rng(2021)
    weight_VD = random.standard_normal((COLUMNS, HARD_WIDTH), dtype=np.float32) * (
        HARD_SPREAD / HARD_WIDTH**0.5
    )
    chunks = []
    for _ in range(0, ROWS, CHUNK):
        hidden_ND = random.standard_normal((CHUNK, HARD_WIDTH), dtype=np.float32)
        logits_NV = (hidden_ND @ weight_VD.T).astype(np.float32)
        bent_NV = HARD_K * logits_NV - (HARD_K - 1) * np.logaddexp(logits_NV, np.float32(0))
        chunks.append(bent_NV - np.log(np.exp(bent_NV).sum(axis=1, keepdims=True)))
    return np.concatenate(chunks)


def prepare_spectrum() -> Callable[[], object]:
    """The streamed Gram matrix and its eigenvalues."""
    return _prepare_spectrum(log_p_matrix())


def prepare_kl_rank() -> Callable[[], object]:
    """The KL ranks, three bounds."""
    return _prepare_kl_rank(log_p_matrix())


def prepare_hard_spectrum() -> Callable[[], object]:
    """The spectrum of the other matrix."""
    return _prepare_spectrum(hard_matrix())


def prepare_hard_kl_rank() -> Callable[[], object]:
    """The KL ranks of the other matrix."""
    return _prepare_kl_rank(hard_matrix())


def _prepare_spectrum(matrix_NV: NDArray[np.float32]) -> Callable[[], object]:
    torch.set_num_threads(int(os.environ[THREADS]))
    matrix_spectrum(matrix_NV[:100, :100])  # loads the libraries, as a trial has long done
    chunks = np.split(matrix_NV, range(CHUNK, ROWS, CHUNK))
    return _told("spectrum", lambda: log_p_spectrum(chunks, rows=ROWS, columns=COLUMNS))


def _prepare_kl_rank(matrix_NV: NDArray[np.float32]) -> Callable[[], object]:
    torch.set_num_threads(int(os.environ[THREADS]))
    matrix = torch.from_numpy(matrix_NV)
    kl_ranks(lambda: [matrix[:100, :100]], rows=100, columns=100)
    return _told(
        "kl_rank", lambda: kl_ranks(lambda: matrix.split(1024), rows=ROWS, columns=COLUMNS)
    )


def _told(name: str, work: Callable[[], object]) -> Callable[[], object]:
    """The same work, which says what it took of the processor: the wall's seconds are also those of
    other jobs."""

    def run() -> object:
        start = time.process_time()
        result = work()
        print(f"{name}: {time.process_time() - start:.2f} processor s", flush=True)
        return result

    return run


def main() -> None:
    """Time both in turns, and print what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=1, help="of torch and of BLAS")
    parser.add_argument("--rounds", type=int, default=5, help="timed runs of each")
    parser.add_argument("--hard", action="store_true", help="the matrix with higher KL ranks")
    arguments = parser.parse_args()
    for variable in (THREADS, "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(
            arguments.threads
        )  # read by the libraries of the processes that are timed
    spectrum, kl_rank = (
        (prepare_hard_spectrum, prepare_hard_kl_rank)
        if arguments.hard
        else (prepare_spectrum, prepare_kl_rank)
    )
    timings = compare({"spectrum": spectrum, "kl_rank": kl_rank}, rounds=arguments.rounds, warmup=0)
    print_table(
        f"{ROWS:,} x {COLUMNS:,} log P, threads: {arguments.threads}", timings, reference="spectrum"
    )
    ratios = [
        kl / other
        for kl, other in zip(timings["kl_rank"].all_s, timings["spectrum"].all_s, strict=True)
    ]
    print(
        f"times the spectrum's seconds, turn by turn: "
        f"{', '.join(f'{ratio:.2f}' for ratio in ratios)}"
    )
    matrix = torch.from_numpy(hard_matrix() if arguments.hard else log_p_matrix())
    print(kl_rank_metrics(kl_ranks(lambda: matrix.split(1024), rows=ROWS, columns=COLUMNS)))


if __name__ == "__main__":
    main()
