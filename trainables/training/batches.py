"""Cutting a stream of tokens into parallel streams, and the lengths of training windows. Shapes: T time, B batch."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainables.config import MIN_STREAM

MIN_WINDOW = 5
MAX_EXTRA = 40
SHORT_PROBABILITY = 0.05


def parallel_streams(tokens: NDArray[np.int64], batch: int, device: str, *, split: str) -> Tensor:
    """The stream cut into `batch` equal parts side by side, T x B; what does not fill a row is left out.

    Raises ValueError where the text is too short to give every part MIN_STREAM tokens; a plan refuses such a trial.
    """
    length = len(tokens) // batch
    if length < MIN_STREAM:
        raise ValueError(f"a batch of {batch} needs {MIN_STREAM * batch} tokens; the {split} text has {len(tokens)}")
    streams = torch.tensor(tokens[: length * batch]).view(batch, length)
    return streams.t().contiguous().to(device)


def draw_window(bptt: int, generator: torch.Generator) -> int:
    """A random window length: Normal(bptt or, rarely, bptt / 2; 5), at least 5 and at most bptt + 40."""
    short = torch.rand((), generator=generator).item() < SHORT_PROBABILITY
    mean = bptt / 2 if short else float(bptt)
    length = int(mean + 5 * torch.randn((), generator=generator).item())
    return min(max(MIN_WINDOW, length), bptt + MAX_EXTRA)
