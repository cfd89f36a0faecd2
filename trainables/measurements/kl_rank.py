"""KL rank of a log-P matrix: a number of directions that keeps the loss below a bound in nats.

L is log P with centred rows, and L_r its projection onto the r leading right singular vectors. KL_r
is the mean over contexts of KL(P || softmax(L_r)) in nats. The KL rank for a bound is the smallest
r with KL_r at or below the bound. The search can miss the smallest r, and other directions may need
fewer: see docs/measurements.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor

from trainables.device import on_gpu
from trainables.language_model import LanguageModel
from trainables.measurements.chunks import Chunks, blocks, centred, compute_in_memory
from trainables.measurements.directions import Directions
from trainables.trial_folder import Metric

BOUNDS = ("1e-1", "1e-2", "1e-3")
"""Bounds in nats, spelt as in metric names."""
FEW_ROWS = 2048
"""A matrix with more rows is first searched on a sample of its rows."""
LEAST_KL = 1e-12
"""Lower limit of KL, in nats, before its logarithm is taken."""


@dataclass(frozen=True, eq=False)
class KlRanks:
    """KL ranks of a log-P matrix."""

    ranks: dict[str, int]
    curve: dict[int, float]
    """KL_r in nats by rank r, ascending. Includes 0 and all powers of two below the largest KL
    rank."""
    rows: int
    columns: int


def kl_ranks(chunks: Chunks, *, rows: int, columns: int, bounds: Sequence[str] = BOUNDS) -> KlRanks:
    """Return the KL ranks of a log-P matrix of any float type. Raises as `Directions` does."""
    directions = Directions(chunks, rows=rows, columns=columns)
    limits = [float(name) for name in bounds]
    # Leaving out sigma^2 that sum to t costs at most t / (4 N) nats: a row's change has a range of
    # at most sqrt(2) times its norm, and by Hoeffding's lemma its KL is at most an eighth of the
    # squared range.
    last = directions.rank_for_residual(4 * rows * min(limits))

    def curve_of(chunks: Chunks, starts: Sequence[int]) -> dict[int, float]:
        def evaluate(ranks: Sequence[int]) -> list[float]:
            return _mean_kl(chunks(), directions, ranks)

        return curve_around(evaluate, limits, starts, last)

    # KL is about half the variance that is left out: t / (2 N V).
    starts = [directions.rank_for_residual(2 * rows * columns * limit) for limit in limits]
    if rows > FEW_ROWS:
        sample_SV = directions.sample()
        sample_curve = curve_of(lambda: [sample_SV], starts)
        starts = [_least(sample_curve, limit, last) for limit in limits]
    curve = curve_of(chunks, starts)
    ranks = [_least(curve, limit, last) for limit in limits]
    by_bound = dict(zip(bounds, ranks, strict=True))
    return KlRanks(ranks=by_bound, curve=dict(sorted(curve.items())), rows=rows, columns=columns)


def kl_ranks_after(
    model: LanguageModel, contexts_NC: Tensor, *, bounds: Sequence[str] = BOUNDS
) -> KlRanks:
    """Return the KL ranks of log P at `contexts_NC`."""
    rows, columns = len(contexts_NC), len(model.embedding_VD)
    ranks = partial(kl_ranks, rows=rows, columns=columns, bounds=bounds)
    return compute_in_memory(ranks, model, contexts_NC, squares=5)


def kl_rank_metrics(result: KlRanks) -> dict[str, Metric]:
    """Return the `kl_rank@1` metrics of docs/measurements.md by name."""
    powers = [0, *_powers_of_two(max(result.ranks.values()))]
    return {
        **{f"kl_rank_{name}": rank for name, rank in result.ranks.items()},
        **{f"kl_at_rank_{rank}": result.curve[rank] for rank in powers},
        "kl_rank_rows": result.rows,
        "kl_rank_columns": result.columns,
    }


def _mean_kl(chunks: Iterable[Tensor], directions: Directions, ranks: Sequence[int]) -> list[float]:
    vectors_VR = directions.leading(ranks[-1])
    totals, rows = [0.0] * len(ranks), 0
    # Large products are faster with many rows. The blocks then take a quarter of the eigenvectors'
    # memory.
    for block_NV in blocks(chunks, least_rows=max(16, ranks[-1] // 16)):
        sums = _sums_of_kl(block_NV, vectors_VR, ranks, directions.count).tolist()
        totals = [total + part for total, part in zip(totals, sums, strict=True)]
        rows += len(block_NV)
    return [max(0.0, total / rows) for total in totals]


def _sums_of_kl(log_p_NV: Tensor, vectors_VR: Tensor, ranks: Sequence[int], count: int) -> Tensor:
    log_p_NV = torch.log_softmax(log_p_NV, dim=1)  # float32 rows sum to one only within 1e-6
    p_NV = log_p_NV.exp()
    minus_entropy = torch.linalg.vecdot(p_NV, log_p_NV).sum()
    # As many rows as the cores' own caches hold; a GPU takes all.
    piece_rows = len(p_NV) if on_gpu(p_NV) else max(1, len(p_NV) * torch.get_num_threads() // 16)
    sums: dict[int, Tensor] = {}
    for rank, approximation_NV in approximations(centred(log_p_NV), vectors_VR, ranks, count):
        parts = zip(p_NV.split(piece_rows), approximation_NV.split(piece_rows), strict=True)
        cross_entropies = [
            (part_NV.logsumexp(1) - torch.linalg.vecdot(p, part_NV)).sum() for p, part_NV in parts
        ]
        sums[rank] = minus_entropy + torch.stack(cross_entropies).sum()
    return torch.stack([sums[rank] for rank in ranks])


def approximations(
    centred_NV: Tensor, vectors_VR: Tensor, ranks: Sequence[int], count: int
) -> Iterator[tuple[int, Tensor]]:
    """Yield each rank r with the projection L_r, in a buffer that the next step overwrites.

    Low ranks add directions to zero. High ranks, in descending order, subtract directions from L,
    which has `count` directions. The widest gap between ranks separates the two.
    """
    stops = [0, *ranks, count]
    widest = max(range(len(ranks) + 1), key=lambda step: stops[step + 1] - stops[step])
    path_up, path_down = stops[: widest + 1], stops[:widest:-1]
    for approximation_NV, path, sign in (
        (torch.zeros_like(centred_NV), path_up, 1),
        (centred_NV, path_down, -1),
    ):
        first = min(path)
        assert len(path) == 1 or vectors_VR.shape[1] >= max(path)
        coefficients_NR = centred_NV @ vectors_VR[:, first : max(path)]
        for pair in pairwise(path):
            low, high = sorted(pair)
            part_NR = coefficients_NR[:, low - first : high - first]
            approximation_NV.addmm_(part_NR, vectors_VR[:, low:high].T, alpha=sign)
            yield pair[1], approximation_NV


def curve_around(
    evaluate: Callable[[Sequence[int]], list[float]],
    limits: Sequence[float],
    starts: Sequence[int],
    last: int,
) -> dict[int, float]:
    """Return KL_r by rank r: at 0, at powers of two, and around each limit's crossing.

    At a crossing r, KL_r is at or below the limit and KL_(r-1) above it. Powers of two end below
    the largest crossing. `starts` are expected crossings. `evaluate` takes ascending ranks up to
    `last`, beyond which only rounding errors can exceed a limit.
    """
    neighbours = {rank + step for rank in starts for step in (-rank // 16, -1, 0, rank // 16)}
    candidates = {0, *_powers_of_two(max(starts)), *neighbours}
    curve: dict[int, float] = {}
    while ranks := sorted(rank for rank in candidates if 0 <= rank <= last and rank not in curve):
        curve |= zip(ranks, evaluate(ranks), strict=True)
        candidates = set().union(*(_next_ranks(curve, limit, last) for limit in limits))
    return curve


def _next_ranks(curve: Mapping[int, float], limit: float, last: int) -> set[int]:
    highest = max(curve)
    upper = _least(curve, limit, highest + 1)
    if upper > highest:
        return {highest + 1, min(last, highest + highest // 2), *_powers_of_two(highest + 1)}
    lower = max((rank for rank in curve if rank < upper), default=upper)
    if upper - lower <= 1:
        return set(_powers_of_two(upper))
    # Try the crossing of a straight line through the logarithms, and the middle in case they are
    # not on a line.
    high, low, bound = (math.log(max(kl, LEAST_KL)) for kl in (curve[lower], curve[upper], limit))
    middle = lower + round((upper - lower) * min(1.0, (high - bound) / (high - low)))
    neighbours = (middle - 8, middle - 1, middle, middle + 1, middle + 8, (lower + upper) // 2)
    return {rank for rank in neighbours if lower < rank < upper}


def _least(curve: Mapping[int, float], limit: float, default: int) -> int:
    return min((rank for rank, kl in curve.items() if kl <= limit), default=default)


def _powers_of_two(below: int) -> list[int]:
    return [2**exponent for exponent in range((below - 1).bit_length())] if below > 1 else []
