"""Categorical targets from a symmetric Dirichlet distribution, drawn where Gamma variates underflow too.

Shapes: N targets (contexts), V outcomes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Targets:
    """N distributions over V outcomes, in float64."""

    log_p_NV: NDArray[np.float64]
    """Finite everywhere, also where the probability is too small for a float64."""
    p_NV: NDArray[np.float64]
    """Rows sum to 1."""

    @property
    def mean_entropy(self) -> float:
        """Mean over the targets, in nats: no model's cross-entropy is lower."""
        return float(-(self.p_NV * self.log_p_NV).sum(axis=1).mean())

    @property
    def modes(self) -> NDArray[np.int64]:
        """The likeliest outcome of each target."""
        modes_N: NDArray[np.int64] = self.log_p_NV.argmax(axis=1)
        return modes_N


def draw_targets(*, alpha: float, targets: int, outcomes: int, seed: int) -> Targets:
    """Draw each target from Dir(alpha, .., alpha).

    A Dirichlet variate is a vector of Gamma(alpha) variates over its sum. Of these most underflow at alpha = 0.01, and
    all of a row may; their logs do not: Gamma(alpha) is Gamma(alpha + 1) U^(1 / alpha), with U uniform.
    """
    rng = np.random.default_rng(seed)
    size = (targets, outcomes)
    log_gamma_NV = np.log(rng.standard_gamma(alpha + 1.0, size)) + np.log1p(-rng.random(size)) / alpha
    log_gamma_NV -= log_gamma_NV.max(axis=1, keepdims=True)
    log_p_NV = log_gamma_NV - np.log(np.exp(log_gamma_NV).sum(axis=1, keepdims=True))
    p_NV = np.exp(log_p_NV)
    return Targets(log_p_NV=log_p_NV, p_NV=p_NV / p_NV.sum(axis=1, keepdims=True))
