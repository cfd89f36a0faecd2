"""What is drawn at random: streams of numbers that start from one seed, and the dropouts and noise
of language models.

These draw from the trial's own generator, so that a run can be repeated; without one, as outside
training, each returns its input as it is."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def stream(seed: int, part: int) -> torch.Generator:
    """The stream of this number of this seed, on the CPU; the same whatever the other streams are
    used for."""
    return torch.Generator().manual_seed(mix_seed(seed, part))


def mix_seed(seed: int, part: int) -> int:
    """A seed of 32 bits from both numbers.

    torch's generator looks at the low 32 bits of a seed alone, so seeds that differ above them are
    one stream; the output of numpy's SeedSequence is the same in every version."""
    [bits] = np.random.SeedSequence(seed, spawn_key=(part,)).generate_state(1)
    return int(bits)


def _dropped(
    values: Tensor, shape: tuple[int, ...], rate: float, generator: torch.Generator | None
) -> Tensor:
    """The values times a mask of this shape: 0 with probability `rate`, else 1 / (1 - rate), for
    bf16 in float32.

    In bf16, 1 / (1 - rate) is off by up to 0.4%, and so would be the mean of everything behind it.
    """
    if generator is None or rate == 0:
        return values
    dtype = torch.float32 if values.dtype == torch.bfloat16 else values.dtype
    mask = torch.empty(shape, dtype=dtype, device=values.device)
    return values * (mask.bernoulli_(1 - rate, generator=generator) / (1 - rate))


def dropout(values: Tensor, rate: float, generator: torch.Generator | None) -> Tensor:
    """Dropout of single elements (Srivastava et al. 2014)."""
    return _dropped(values, tuple(values.shape), rate, generator)


def locked_dropout(states_TBD: Tensor, rate: float, generator: torch.Generator | None) -> Tensor:
    """Dropout with one mask for all time steps (Gal and Ghahramani 2016)."""
    _, batch, width = states_TBD.shape
    return _dropped(states_TBD, (1, batch, width), rate, generator)


def word_dropout(embedding_VD: Tensor, rate: float, generator: torch.Generator | None) -> Tensor:
    """Dropout of whole rows of the embedding matrix: a word is missing everywhere in the batch."""
    return _dropped(embedding_VD, (len(embedding_VD), 1), rate, generator)


def drop_connect(weight: Tensor, rate: float, generator: torch.Generator | None) -> Tensor:
    """Dropout of single weights (Wan et al. 2013); a dropped weight gets no gradient."""
    return _dropped(weight, tuple(weight.shape), rate, generator)


def gaussian_noise(
    states_TBD: Tensor, deviation: float, generator: torch.Generator | None
) -> Tensor:
    """Independent Normal(0, deviation^2) added to every element."""
    if generator is None or deviation == 0:
        return states_TBD
    noise_TBD = torch.empty_like(states_TBD).normal_(0.0, deviation, generator=generator)
    return states_TBD + noise_TBD
