"""Seeded random streams, and the dropouts and noise of language models.

Outside training there is no generator: dropouts and noise return their input.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def stream(seed: int, part: int) -> torch.Generator:
    """Return a CPU generator for stream `part` of a seed; all streams are independent."""
    return torch.Generator().manual_seed(mix_seed(seed, part))


def mix_seed(seed: int, part: int) -> int:
    """Combine `seed` and `part` into a 32-bit seed."""
    # torch uses only a seed's low 32 bits, so larger seeds could share a stream. numpy's
    # SeedSequence gives equal bits in every version.
    [bits] = np.random.SeedSequence(seed, spawn_key=(part,)).generate_state(1)
    return int(bits)


def _drop(
    values: Tensor, shape: tuple[int, ...], rate: float, generator: torch.Generator | None
) -> Tensor:
    # A bf16 mask would change later means by up to 0.4%, so bf16 values get a float32 mask.
    if generator is None or rate == 0:
        return values
    dtype = torch.float32 if values.dtype == torch.bfloat16 else values.dtype
    mask = torch.empty(shape, dtype=dtype, device=values.device)
    return values * (mask.bernoulli_(1 - rate, generator=generator) / (1 - rate))


def dropout(values: Tensor, rate: float, generator: torch.Generator | None) -> Tensor:
    """Drop single elements (Srivastava et al. 2014); a dropped one gets no gradient."""
    return _drop(values, tuple(values.shape), rate, generator)


def locked_dropout(states_TBD: Tensor, rate: float, generator: torch.Generator | None) -> Tensor:
    """Apply dropout with one mask for all time steps (Gal and Ghahramani 2016)."""
    _, batch, width = states_TBD.shape
    return _drop(states_TBD, (1, batch, width), rate, generator)


def word_dropout(embedding_VD: Tensor, rate: float, generator: torch.Generator | None) -> Tensor:
    """Drop whole rows of the embedding matrix: a dropped word is zero in the whole batch."""
    return _drop(embedding_VD, (len(embedding_VD), 1), rate, generator)


def gaussian_noise(
    states_TBD: Tensor, deviation: float, generator: torch.Generator | None
) -> Tensor:
    """Add independent Normal(0, deviation^2) noise to every element."""
    if generator is None or deviation == 0:
        return states_TBD
    noise_TBD = torch.empty_like(states_TBD).normal_(0.0, deviation, generator=generator)
    return states_TBD + noise_TBD
