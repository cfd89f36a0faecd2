"""Cut a text into parallel streams, draw training windows, and measure perplexity.

Perplexity uses windows of a fixed length, which carry over any hidden state and predict every token
once.

Shapes: T time, B batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainables.config import MIN_STREAM
from trainables.language_model import LanguageModel
from trainables.pulse import PULSE

MIN_WINDOW = 5
MAX_EXTRA = 40
SHORT_PROBABILITY = 0.05
ROWS_PER_LOSS = 1024
"""Minimum rows per call of the output layer's loss; each call has a fixed cost."""


def parallel_streams(tokens: NDArray[np.int64], batch: int, device: str) -> Tensor:
    """Return the text as `batch` streams of equal length, T x B; the remainder is dropped.

    Raises ValueError if a stream has fewer than MIN_STREAM tokens; a plan refuses such trials.
    """
    length = len(tokens) // batch
    if length < MIN_STREAM:
        raise ValueError(
            f"a batch of {batch} needs {MIN_STREAM * batch} tokens; the text has {len(tokens)}"
        )
    streams = torch.tensor(tokens[: length * batch]).view(batch, length)
    return streams.t().contiguous().to(device)


def draw_window(bptt: int, generator: torch.Generator) -> int:
    """Return a random length, Normal(bptt, 5) or rarely Normal(bptt / 2, 5), in [5, bptt + 40]."""
    is_short = torch.rand((), generator=generator).item() < SHORT_PROBABILITY
    mean = bptt / 2 if is_short else float(bptt)
    length = int(mean + 5 * torch.randn((), generator=generator).item())
    return min(max(MIN_WINDOW, length), bptt + MAX_EXTRA)


@torch.no_grad()
def mean_loss(model: LanguageModel, tokens: NDArray[np.int64], *, batch: int, window: int) -> float:
    """Return the mean cross-entropy in nats per token, except each stream's first token.

    A model without state sees only earlier tokens of the window. Leaves the model in evaluation
    mode.
    """
    model.eval()
    streams_TB = parallel_streams(tokens, batch, str(model.embedding_VD.device))
    state, weight_VD = model.zero_state(batch), model.output_weight()
    total = torch.zeros((), dtype=torch.float64, device=streams_TB.device)
    for contexts, targets_N in windows_read(streams_TB, window, state, model.contexts):
        hidden_TBC = torch.cat([read.dropped_TBC for read in contexts])
        hidden_N1C = hidden_TBC.flatten(0, 1).unsqueeze(1)
        total += model.output.loss(hidden_N1C, weight_VD, targets_N).double() * len(targets_N)
    return total.item() / ((len(streams_TB) - 1) * batch)


def windows_read(
    streams_TB: Tensor, window: int, state: Any, read: Callable[[Tensor, Any], Any]
) -> Iterator[tuple[list[Any], Tensor]]:
    """Apply `read` to all windows; yield lists of results, and the N tokens that they predict.

    `read` receives a window and the state before it. The state after it is the result's `state`.
    """
    last, first, results = len(streams_TB) - 1, 0, list[Any]()
    for start in range(0, last, window):
        PULSE.touch()
        end = min(start + window, last)
        contexts = read(streams_TB[start:end], state)
        state = contexts.state
        results.append(contexts)
        if (end - first) * streams_TB.shape[1] >= ROWS_PER_LOSS or end == last:
            yield results, streams_TB[first + 1 : end + 1].reshape(-1)
            first, results = end, []
