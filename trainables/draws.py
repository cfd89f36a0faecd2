"""What is drawn at random: streams of numbers that start from one seed, and the dropouts and the noise of AWD-LSTM.

These draw from the trial's own generator, so that a run can be repeated; without one, as outside training, each returns
its input as it is.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def stream(seed: int, part: int) -> torch.Generator:
    """The stream of this number of this seed, on the CPU; the same whatever the other streams are used for.

    torch's generator looks at the low 32 bits of a seed alone, so seeds that differ above them are one stream; numpy's
    SeedSequence, whose output is the same in every version, mixes seed and part into 32 bits.
    """
    [mixed] = np.random.SeedSequence(seed, spawn_key=(part,)).generate_state(1)
    return torch.Generator().manual_seed(int(mixed))


def keep_mask(shape: tuple[int, ...], rate: float, like: Tensor, generator: torch.Generator) -> Tensor:
    """0 with probability `rate`, else 1 / (1 - rate), on the device and in the dtype of `like`, for bf16 in float32.

    In bf16, 1 / (1 - rate) is off by up to 0.4%, and so would be the mean of everything behind it.
    """
    dtype = torch.float32 if like.dtype == torch.bfloat16 else like.dtype
    mask = torch.empty(shape, dtype=dtype, device=like.device)
    return mask.bernoulli_(1 - rate, generator=generator) / (1 - rate)


def locked_dropout(states_TBD: Tensor, rate: float, generator: torch.Generator | None) -> Tensor:
    """Dropout with one mask for all time steps (Gal and Ghahramani 2016)."""
    if generator is None or rate == 0:
        return states_TBD
    _, batch, width = states_TBD.shape
    return states_TBD * keep_mask((1, batch, width), rate, states_TBD, generator)


def word_dropout(embedding_VD: Tensor, rate: float, generator: torch.Generator | None) -> Tensor:
    """Dropout of whole rows of the embedding matrix: a word is missing everywhere in the batch."""
    if generator is None or rate == 0:
        return embedding_VD
    return embedding_VD * keep_mask((len(embedding_VD), 1), rate, embedding_VD, generator)


def drop_connect(weight: Tensor, rate: float, generator: torch.Generator | None) -> Tensor:
    """Dropout of single weights (Wan et al. 2013); a dropped weight gets no gradient."""
    if generator is None or rate == 0:
        return weight
    return weight * keep_mask(tuple(weight.shape), rate, weight, generator)


def gaussian_noise(states_TBD: Tensor, deviation: float, generator: torch.Generator | None) -> Tensor:
    """Independent Normal(0, deviation^2) added to every element."""
    if generator is None or deviation == 0:
        return states_TBD
    noise_TBD = torch.empty_like(states_TBD).normal_(0.0, deviation, generator=generator)
    return states_TBD + noise_TBD
