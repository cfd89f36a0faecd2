"""Log-P matrix of a trained model: one row per context, one column per word."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainables.errors import UserError
from trainables.language_model import LanguageModel
from trainables.pulse import PULSE

ROWS_PER_CHUNK = 1024
NORMALISED_WITHIN = 1e-2
"""Largest allowed |log(sum of P)| of a row, in nats. Float32 rounding errors are smaller."""


@torch.no_grad()
def context_vectors(model: LanguageModel, tokens: NDArray[np.int64], *, window: int) -> Tensor:
    """Return the context vector after each token, N x C.

    Reads the tokens in windows. An LSTM keeps its state between windows; a Transformer does not.
    """
    model.eval()
    stream_TB = torch.tensor(tokens, device=model.embedding_VD.device).unsqueeze(1)
    state, windows = model.zero_state(1), []
    for window_TB in stream_TB.split(window):
        PULSE.touch()
        contexts = model.contexts(window_TB, state)
        state = contexts.state
        windows.append(contexts.dropped_TBC.squeeze(1))
    return torch.cat(windows)


def log_probability_matrix(model: LanguageModel, contexts_NC: Tensor) -> NDArray[np.float32]:
    """Return the log-P matrix, N x V, on the CPU."""
    chunks = [chunk_NV.cpu() for chunk_NV in log_probability_chunks(model, contexts_NC)]
    return torch.cat(chunks).numpy()


@torch.no_grad()
def log_probability_chunks(model: LanguageModel, contexts_NC: Tensor) -> Iterator[Tensor]:
    """Yield row chunks of the log-P matrix on the model's device.

    Raises UserError if the first rows' probabilities do not sum to one.
    """
    weight_VD = model.output_weight()
    for start in range(0, len(contexts_NC), ROWS_PER_CHUNK):
        PULSE.touch()
        chunk = contexts_NC[start : start + ROWS_PER_CHUNK]
        log_p_NV = model.output.log_probabilities(chunk, weight_VD)
        if start == 0:  # only once, because the check waits for the device
            _require_probabilities(log_p_NV[:64])
        yield log_p_NV


def _require_probabilities(log_p_NV: Tensor) -> None:
    deviation = log_p_NV.double().logsumexp(1).abs().max().item()
    if deviation > NORMALISED_WITHIN:
        raise UserError(
            "output layer: probabilities must sum to one, but the log of their sum at a context is "
            f"{deviation:.3g} away from zero. End log_probabilities with log_softmax."
        )
