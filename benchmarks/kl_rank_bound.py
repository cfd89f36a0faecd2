"""How far the KL rank is above the rank that is needed, after training at scale quick: `kl_rank@1`
cuts log P by least squares; next to it the same with columns weighted, and factors that are
optimised for KL.

    python -m benchmarks.kl_rank_bound --corpus ptb --data-dir DIR     trains 4 models, then
    measures: 3 minutes

Weighted: column v of log P, centred, times the root of the mean probability of word v. Optimised:
at most 40 steps of L-BFGS from the better of the two, so still an upper bound.

Legend: N contexts, V words, R rank.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from benchmarks.rank_sample import trained
from search_spaces.awd_lstm import awd_lstm
from search_spaces.scales import SCALES, apply_scale
from trainables.config import (
    CorpusConfig,
    GssConfig,
    OutputLayerConfig,
    SoftcapConfig,
    SoftmaxConfig,
    TrialConfig,
)
from trainables.corpora import identity, load
from trainables.measurements import kl_ranks, log_p_rows

LAYERS: tuple[OutputLayerConfig, ...] = (
    SoftmaxConfig(),
    GssConfig(c=-1.5, k=2.5),
    SoftcapConfig(cap=15),
    SoftcapConfig(cap=5),
)
RANKS = (8, 9, 10, 11, 12, 13)
BOUNDS = (0.1, 0.01, 0.001)
STEPS = 40


@dataclass(frozen=True, eq=False)
class LogP:
    """Log P of a model, in float64, and what approximations of it cost."""

    log_p_NV: Tensor

    @cached_property
    def weights(self) -> Tensor:
        """Root of the mean probability of each word."""
        return self.log_p_NV.exp().mean(0).sqrt()

    @cached_property
    def truncated(self) -> tuple[Tensor, Tensor]:
        """Factors N x n and n x V of the centred matrix, from its singular value decomposition."""
        return self._factors(torch.ones_like(self.weights))

    @cached_property
    def weighted(self) -> tuple[Tensor, Tensor]:
        """The same of the matrix with weighted columns, the weights taken out again."""
        return self._factors(self.weights)

    def _factors(self, weight_V: Tensor) -> tuple[Tensor, Tensor]:
        centred_NV = self.log_p_NV - self.log_p_NV.mean(1, keepdim=True)
        left, sigma, right = torch.linalg.svd(centred_NV * weight_V, full_matrices=False)
        root = sigma.sqrt()
        return left * root, root[:, None] * right / weight_V

    def kl(self, left_NR: Tensor, right_RV: Tensor) -> float:
        """Mean over contexts of KL(P || softmax(left right)) in nats."""
        log_q_NV = torch.log_softmax(left_NR @ right_RV, 1)
        return float((self.log_p_NV.exp() * (self.log_p_NV - log_q_NV)).sum(1).mean())

    def kl_at(self, factors: tuple[Tensor, Tensor], rank: int) -> float:
        """The same of the first `rank` columns and rows."""
        return self.kl(factors[0][:, :rank], factors[1][:rank])

    def rank_for(self, factors: tuple[Tensor, Tensor], nats: float) -> int:
        """The least rank whose KL is at most this."""
        return next(
            rank for rank in range(len(factors[1]) + 1) if self.kl_at(factors, rank) <= nats
        )

    def optimised(self, rank: int) -> float:
        """KL after L-BFGS on factors of this rank."""
        start = min(self.truncated, self.weighted, key=lambda factors: self.kl_at(factors, rank))
        left_NR, right_RV = (
            part.float().contiguous().clone().requires_grad_()
            for part in (start[0][:, :rank], start[1][:rank])
        )
        p_NV = self.log_p_NV.exp().float()
        optimizer = torch.optim.LBFGS(
            [left_NR, right_RV], max_iter=STEPS, line_search_fn="strong_wolfe"
        )

        def closure() -> Tensor:
            optimizer.zero_grad()
            loss: Tensor = -(p_NV * torch.log_softmax(left_NR @ right_RV, 1)).sum(1).mean()
            loss.backward()
            return loss

        optimizer.step(closure)
        return self.kl(left_NR.detach().double(), right_RV.detach().double())


def print_gap(name: str, matrix: LogP) -> None:
    """KL ranks by the bounds, and KL in nats by rank."""
    log_p_NV = matrix.log_p_NV
    ranks = kl_ranks(lambda: [log_p_NV], rows=len(log_p_NV), columns=log_p_NV.shape[1]).ranks
    rows: Sequence[tuple[str, tuple[Tensor, Tensor]]] = (
        ("truncated", matrix.truncated),
        ("weighted", matrix.weighted),
    )
    print(f"\n{name}; kl_rank@1 {list(ranks.values())}\n{'':<11}{'rank for nats':<16}KL at {RANKS}")
    for way, factors in rows:
        needed = "/".join(str(matrix.rank_for(factors, nats)) for nats in BOUNDS)
        print(
            f"{way:<11}{needed:<16}{' '.join(f'{matrix.kl_at(factors, rank):.4f}' for rank in RANKS)}"
        )
    kls = [matrix.optimised(rank) for rank in RANKS]
    print(f"{'optimised':<27}{' '.join(f'{kl:.4f}' for kl in kls)}", flush=True)


def main() -> None:
    """Train the models one after another, and print the gap of each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", default="pydocs")
    parser.add_argument("--data-dir", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    text = CorpusConfig(
        name=arguments.corpus, sha256=identity(arguments.corpus, data_dir=arguments.data_dir).sha256
    )
    for layer in LAYERS:
        config = apply_scale(SCALES["quick"], awd_lstm(text, layer))
        assert isinstance(config, TrialConfig)
        corpus = load(config.corpus, data_dir=arguments.data_dir)
        chunks = list(log_p_rows(trained(config, corpus), corpus, config))
        log_p_NV = torch.log_softmax(torch.from_numpy(np.concatenate(chunks)).double(), 1)
        print_gap(str(layer), LogP(log_p_NV))


if __name__ == "__main__":
    main()
