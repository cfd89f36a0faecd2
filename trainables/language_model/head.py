"""Output weights separate from the embedding.

Shapes: V vocabulary, D embedding width, R inner rank.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class OutputHead(nn.Module):
    """Output weights: one V x D matrix, or the product A B of V x R and R x D matrices."""

    def __init__(self, vocabulary_size: int, width: int, rank: int | None) -> None:
        super().__init__()
        self.weight_VD = nn.Parameter(torch.empty(vocabulary_size, width)) if rank is None else None
        self.left_VR = None if rank is None else nn.Parameter(torch.empty(vocabulary_size, rank))
        self.right_RD = None if rank is None else nn.Parameter(torch.empty(rank, width))

    def weight(self) -> Tensor:
        """Return the V x D weights, differentiable."""
        if self.left_VR is None or self.right_RD is None:
            assert self.weight_VD is not None
            return self.weight_VD
        return self.left_VR @ self.right_RD

    def initialise(self, deviation: float, generator: torch.Generator) -> None:
        """Draw normal weights; the V x D matrix has entries of standard deviation `deviation`."""
        # B keeps the scale of context vectors, and rows of A have the norm of a single matrix's
        # rows. So neither factor's scale makes the other's gradient small.
        if self.left_VR is None or self.right_RD is None:
            nn.init.normal_(self.weight(), 0.0, deviation, generator=generator)
            return
        rank, width = self.right_RD.shape
        nn.init.normal_(self.left_VR, 0.0, deviation * (width / rank) ** 0.5, generator=generator)
        nn.init.normal_(self.right_RD, 0.0, width**-0.5, generator=generator)

    @torch.no_grad()
    def scale_(self, factor: float) -> None:
        """Multiply the V x D weights by `factor`."""
        (self.weight() if self.left_VR is None else self.left_VR).mul_(factor)
