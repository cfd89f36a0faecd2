"""Independent streams of random numbers that start from one seed."""

from __future__ import annotations

import numpy as np
import torch


def stream(seed: int, part: int) -> torch.Generator:
    """The stream of this number of this seed, on the CPU; the same whatever the other streams are used for.

    torch's generator looks at the low 32 bits of a seed alone, so seeds that differ above them are one stream; numpy's
    SeedSequence, whose output is the same in every version, mixes seed and part into 32 bits.
    """
    [mixed] = np.random.SeedSequence(seed, spawn_key=(part,)).generate_state(1)
    return torch.Generator().manual_seed(int(mixed))
