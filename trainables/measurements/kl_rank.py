"""The KL rank of a log-P matrix: an upper bound on how many directions of log P a given loss in
nats needs.

L is log P with every row centred, which a softmax does not see, and L_r its best approximation of
rank r in the sense of least squares (Eckart and Young 1936): L V_r V_r^T with the r leading right
singular vectors. KL_r is the mean over contexts of KL(P || softmax(L_r)) in nats, and the KL rank
for a bound is the least r with KL_r at or below it. Where other ranks count singular values, this
weighs directions by what leaving them out costs in cross-entropy. Another matrix of rank r can have
a lower KL: factors optimised for it had about half the nats. Between tied singular values L_r and
KL_r are undefined, as any basis of their directions is as good as another.

KL_r is evaluated over all rows for the ranks that are looked at: 0, the powers of two, and those
around a crossing of the bound until two neighbours r - 1 and r lie on its two sides. Nothing makes
KL_r fall with every r, as least squares say nothing of the loss: of a 256 x 500 matrix of gss with
steep bends (c = 0, k = 3, width 20, logits of standard deviation 10) it rose at 43 of 256 steps, by
up to 4.8 nats. Where it falls to a bound and rises above it again between two ranks that were
looked at, that r is missed, and what is given is a later r, with KL_r at or below the bound and
KL_(r-1) above it. All in float64.

Legend: N rows (contexts), V columns (vocabulary), R directions.
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
from trainables.measurements.chunks import Chunks, blocks, centred, where_it_fits
from trainables.measurements.directions import Directions
from trainables.trial_folder import Metric

BOUNDS = ("1e-1", "1e-2", "1e-3")
"""Of the mean KL in nats, in the spelling of the metrics' names."""
FEW_ROWS = 2048
"""Of more rows, a sample says first about where the ranks are."""
LEAST_KL = 1e-12
"""Nats that count as none where the logarithm of KL is taken."""


@dataclass(frozen=True, eq=False)
class KlRanks:
    """What was found of an N x V log-P matrix."""

    ranks: dict[str, int]
    """The KL rank by bound, the bounds spelt as they were given."""
    curve: dict[int, float]
    """KL_r in nats by r, ascending, of every r that was looked at: among them 0 and the powers of
    two below the largest rank."""
    rows: int
    columns: int


def kl_ranks(chunks: Chunks, *, rows: int, columns: int, bounds: Sequence[str] = BOUNDS) -> KlRanks:
    """The KL ranks of a log-P matrix of this shape, of any float type and on any device.

    Raises as `Directions` does.
    """
    directions = Directions(chunks, rows=rows, columns=columns)
    limits = [float(name) for name in bounds]
    # At most t / (4 N) for leaving out squares of t in all: a row's change has a range of at most
    # sqrt(2) its norm, and by Hoeffding's lemma its KL is at most an eighth of the squared range.
    last = directions.rank_leaving(4 * rows * min(limits))

    def curve_of(chunks: Chunks, starts: Sequence[int]) -> dict[int, float]:
        def evaluate(ranks: Sequence[int]) -> list[float]:
            return _mean_kl(chunks(), directions, ranks)

        return curve_around(evaluate, limits, starts, last)

    # About half the variance that is gone: t / (2 N V).
    starts = [directions.rank_leaving(2 * rows * columns * limit) for limit in limits]
    if rows > FEW_ROWS:
        sample_SV = directions.sample()
        sampled = curve_of(lambda: [sample_SV], starts)
        starts = [_least(sampled, limit, last) for limit in limits]
    curve = curve_of(chunks, starts)
    ranks = [_least(curve, limit, last) for limit in limits]
    by_bound = dict(zip(bounds, ranks, strict=True))
    return KlRanks(ranks=by_bound, curve=dict(sorted(curve.items())), rows=rows, columns=columns)


def kl_ranks_after(
    model: LanguageModel, contexts_NC: Tensor, *, bounds: Sequence[str] = BOUNDS
) -> KlRanks:
    """The KL ranks of the log-P matrix of a model after these contexts."""
    rows, columns = len(contexts_NC), len(model.embedding_VD)
    ranks = partial(kl_ranks, rows=rows, columns=columns, bounds=bounds)
    return where_it_fits(ranks, model, contexts_NC, squares=5)


def kl_rank_metrics(found: KlRanks) -> dict[str, Metric]:
    """Under the names of the results store: "kl_rank_1e-3" by bound, "kl_at_rank_R" for R = 0, 1,
    2, 4, ... below the largest of these, "kl_rank_rows", "kl_rank_columns"."""
    powers = [0, *_powers_of_two(max(found.ranks.values()))]
    return {
        **{f"kl_rank_{name}": rank for name, rank in found.ranks.items()},
        **{f"kl_at_rank_{rank}": found.curve[rank] for rank in powers},
        "kl_rank_rows": found.rows,
        "kl_rank_columns": found.columns,
    }


def _mean_kl(chunks: Iterable[Tensor], directions: Directions, ranks: Sequence[int]) -> list[float]:
    """KL_r of these rows, for ascending ranks."""
    vectors_VR = directions.leading(ranks[-1])
    totals, rows = [0.0] * len(ranks), 0
    # Large products are faster with many rows, whose blocks then take a quarter of the memory of
    # the eigenvectors.
    for block_NV in blocks(chunks, least_rows=max(16, ranks[-1] // 16)):
        sums = _sums_of_kl(block_NV, vectors_VR, ranks, directions.count).tolist()
        totals = [total + part for total, part in zip(totals, sums, strict=True)]
        rows += len(block_NV)
    return [max(0.0, total / rows) for total in totals]


def _sums_of_kl(log_p_NV: Tensor, vectors_VR: Tensor, ranks: Sequence[int], count: int) -> Tensor:
    """Over the rows, for each rank: sum P log P - sum P L_r + log sum exp L_r."""
    log_p_NV = torch.log_softmax(log_p_NV, dim=1)  # float32 rows sum to one within 1e-6 alone
    p_NV = log_p_NV.exp()
    minus_entropy = torch.linalg.vecdot(p_NV, log_p_NV).sum()
    # Rows that the cores' own caches hold; a GPU takes all.
    few = len(p_NV) if on_gpu(p_NV) else max(1, len(p_NV) * torch.get_num_threads() // 16)
    sums: dict[int, Tensor] = {}
    for rank, approximation_NV in approximations(centred(log_p_NV), vectors_VR, ranks, count):
        parts = zip(p_NV.split(few), approximation_NV.split(few), strict=True)
        cross_entropies = [
            (part_NV.logsumexp(1) - torch.linalg.vecdot(p, part_NV)).sum() for p, part_NV in parts
        ]
        sums[rank] = minus_entropy + torch.stack(cross_entropies).sum()
    return torch.stack([sums[rank] for rank in ranks])


def approximations(
    centred_NV: Tensor, vectors_VR: Tensor, ranks: Sequence[int], count: int
) -> Iterator[tuple[int, Tensor]]:
    """Each rank r with L_r, in memory of the one before.

    Of 0, the ascending ranks and `count`, all directions, no product is made with those of the
    widest gap between two neighbours: ranks below it add directions to nothing, ranks above it take
    the last ones from L, the highest first."""
    stops = [0, *ranks, count]
    widest = max(range(len(ranks) + 1), key=lambda step: stops[step + 1] - stops[step])
    up, down = stops[: widest + 1], stops[:widest:-1]
    for approximation_NV, way, sign in (
        (torch.zeros_like(centred_NV), up, 1),
        (centred_NV, down, -1),
    ):
        first = min(way)
        assert len(way) == 1 or vectors_VR.shape[1] >= max(way)
        coefficients_NR = centred_NV @ vectors_VR[:, first : max(way)]
        for pair in pairwise(way):
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
    """KL_r by r: 0, the powers of two below the largest crossing, and for each limit what shows an
    r with KL_r at or below it and its neighbour r - 1 above: the least such r where KL_r falls
    throughout.

    No r beyond `last` is looked at, where KL_r is below every limit but for rounding. `starts` are
    the ranks at which the crossings are expected; `evaluate` takes ascending ranks."""
    near = {rank + step for rank in starts for step in (-rank // 16, -1, 0, rank // 16)}
    candidates = {0, *_powers_of_two(max(starts)), *near}
    curve: dict[int, float] = {}
    while ranks := sorted(rank for rank in candidates if 0 <= rank <= last and rank not in curve):
        curve |= zip(ranks, evaluate(ranks), strict=True)
        candidates = set().union(*(_next_ranks(curve, limit, last) for limit in limits))
    return curve


def _next_ranks(curve: Mapping[int, float], limit: float, last: int) -> set[int]:
    """What to look at next for the crossing of one limit."""
    highest = max(curve)
    upper = _least(curve, limit, highest + 1)
    if upper > highest:
        return {highest + 1, min(last, highest + highest // 2), *_powers_of_two(highest + 1)}
    lower = max((rank for rank in curve if rank < upper), default=upper)
    if upper - lower <= 1:
        return set(_powers_of_two(upper))
    # Where a straight line through the logarithms crosses; the middle, in case that they are no
    # line.
    high, low, bound = (math.log(max(kl, LEAST_KL)) for kl in (curve[lower], curve[upper], limit))
    middle = lower + round((upper - lower) * min(1.0, (high - bound) / (high - low)))
    near = (middle - 8, middle - 1, middle, middle + 1, middle + 8, (lower + upper) // 2)
    return {rank for rank in near if lower < rank < upper}


def _least(curve: Mapping[int, float], limit: float, default: int) -> int:
    """The least rank that was looked at with a KL of at most the limit."""
    return min((rank for rank, kl in curve.items() if kl <= limit), default=default)


def _powers_of_two(below: int) -> list[int]:
    return [2**exponent for exponent in range((below - 1).bit_length())] if below > 1 else []
