"""Correlation of word-similarity scores with embedding cosines (AAAI 2021, Fig. 4, SM Table 3).

Shapes: n pairs, V words, D width.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from trainables.corpora import Benchmark, WordPair, parse_pairs
from trainables.trial_folder import Metric

FEWEST_PAIRS = 3


def similarity_metrics(
    embedding_VD: NDArray[np.float32],
    vocabulary: Sequence[str],
    benchmarks: Iterable[Benchmark],
    *,
    prefix: str,
) -> dict[str, Metric]:
    """Return "PREFIX pairs NAME" and "PREFIX NAME" for each benchmark.

    The first counts pairs with both words in the vocabulary. The second is Spearman's rho of their
    scores and embedding cosines. Rho is omitted for fewer than 3 pairs, or if scores or cosines are
    constant.
    """
    ids = {word: index for index, word in enumerate(vocabulary)}
    metrics: dict[str, Metric] = {}
    for benchmark in benchmarks:
        pairs = pairs_in_vocabulary(parse_pairs(benchmark), ids)
        scores = np.array([pair.score for pair in pairs])
        if len(pairs) >= FEWEST_PAIRS:
            rho = spearman_rho(_cosines(embedding_VD, pairs, ids), scores)
            if rho is not None:
                metrics[f"{prefix} {benchmark.name}"] = rho
        metrics[f"{prefix} pairs {benchmark.name}"] = len(pairs)
    return metrics


def pairs_in_vocabulary(pairs: Iterable[WordPair], words: Container[str]) -> list[WordPair]:
    """Return the pairs with both words in `words`."""
    return [pair for pair in pairs if pair.first in words and pair.second in words]


def spearman_rho(x: NDArray[np.float64], y: NDArray[np.float64]) -> float | None:
    """Return Spearman's rho; ties get their mean rank. None if `x` or `y` is constant."""
    ranks_x, ranks_y = map(_centred_ranks, (x, y))
    scale = float(np.sqrt((ranks_x @ ranks_x) * (ranks_y @ ranks_y)))
    return float(ranks_x @ ranks_y) / scale if scale > 0 else None


def _centred_ranks(values_n: NDArray[np.float64]) -> NDArray[np.float64]:
    sorted_n = np.sort(values_n)
    first_n, last_n = (np.searchsorted(sorted_n, values_n, side) for side in ("left", "right"))
    return (first_n + last_n - len(values_n)) / 2


def _cosines(
    embedding_VD: NDArray[np.float32], pairs: Sequence[WordPair], ids: Mapping[str, int]
) -> NDArray[np.float64]:
    first_nD = embedding_VD[[ids[pair.first] for pair in pairs]].astype(np.float64)
    second_nD = embedding_VD[[ids[pair.second] for pair in pairs]].astype(np.float64)
    lengths = np.linalg.norm(first_nD, axis=1) * np.linalg.norm(second_nD, axis=1)
    products: NDArray[np.float64] = (first_nD * second_nD).sum(axis=1)
    return products / np.where(lengths > 0, lengths, 1.0)
