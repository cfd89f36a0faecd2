"""Functions of one logit, applied to the logits of a loss in chunks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

GREATEST_BIAS = 40.0
BISECTIONS = 40  # from an interval of length 80 down to the last bits of float32


class ChunkPass:
    """Apply f and its derivative to the logits of a loss, chunk by chunk.

    This base class is for f(x) = x. `like_nV` has the largest shape of a chunk, and its dtype and
    device.
    """

    def __init__(self, function: Any, like_nV: Tensor) -> None:
        """Prepare for the parameters of the function; this base class needs none."""

    def apply_(self, logits_nV: Tensor) -> None:
        """Overwrite the logits with f(logits), up to an additive constant."""

    def pull_back_(self, gradient_nV: Tensor) -> None:
        """Replace the gradient with respect to f by that with respect to the last chunk's logits.

        Also sums the gradients with respect to f's parameters.
        """

    def gradients(self) -> tuple[Tensor, ...]:
        """Return the summed gradients of all chunks so far, with respect to f's parameters."""
        return ()


class _AutogradPass(ChunkPass):
    def __init__(self, function: Pointwise, like_nV: Tensor) -> None:  # noqa: ARG002
        self._function = function
        self._sums: dict[Tensor, Tensor] = {p: torch.zeros_like(p) for p in function.parameters()}

    def apply_(self, logits_nV: Tensor) -> None:
        with torch.enable_grad():
            self._input_nV = logits_nV.clone().requires_grad_()
            # A copy, which the function may overwrite.
            self._output_nV = self._function(self._input_nV.clone())
        if self._output_nV.shape != logits_nV.shape:
            raise ValueError(
                f"{type(self._function).__name__}: forward must return one value per logit, "
                f"got shape {tuple(self._output_nV.shape)} for {tuple(logits_nV.shape)}. Fix it."
            )
        logits_nV.copy_(self._output_nV.detach())

    def pull_back_(self, gradient_nV: Tensor) -> None:
        parameters = [p for p in self._sums if p.requires_grad]
        by_input, *by_parameters = torch.autograd.grad(
            self._output_nV, [self._input_nV, *parameters], gradient_nV, materialize_grads=True
        )
        gradient_nV.copy_(by_input)
        for parameter, gradient in zip(parameters, by_parameters, strict=True):
            self._sums[parameter].add_(gradient)

    def gradients(self) -> tuple[Tensor, ...]:
        return tuple(self._sums.values())


class Pointwise(nn.Module, ABC):
    """An increasing function f that is applied to every logit.

    A subclass needs only `forward`, which then runs with autograd. This package's functions have a
    faster `chunk_pass`.
    """

    chunk_pass: type[ChunkPass] = _AutogradPass

    learning_rate: float | None = None
    """Learning rate of f's parameters; None means the model's learning rate."""
    start_range: tuple[float, float] | None = None
    """Range of logits in which a bounded f is steep enough to learn. None if f is unbounded."""

    @abstractmethod
    def forward(self, logits: Tensor) -> Tensor:
        """Return f of every logit, in any shape; differentiable."""

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the parameters. The default does nothing."""


@torch.no_grad()
def centred_bias(function: Pointwise, log_p_V: Tensor) -> Tensor:
    """Return biases x for which log_softmax(f(x)) equals log P, by bisection.

    The mean of f(x) over the words is f(0), and |x| is at most 40. For a bounded f, x stays in
    `start_range`. All f(x) are lowered until the most likely word fits into this range. Words that
    are too unlikely for the range get its lower end.
    """
    low, high = function.start_range or (-GREATEST_BIAS, GREATEST_BIAS)
    value_V = log_p_V - log_p_V.mean() + function(torch.zeros_like(log_p_V[:1]))
    if function.start_range is not None:
        value_V -= (value_V.max() - function(torch.full_like(log_p_V[:1], high))).clamp(min=0)
    low_V, high_V = torch.full_like(log_p_V, low), torch.full_like(log_p_V, high)
    for _ in range(BISECTIONS):
        middle_V = (low_V + high_V) / 2
        is_below_V = function(middle_V.clone()) < value_V
        low_V = torch.where(is_below_V, middle_V, low_V)
        high_V = torch.where(is_below_V, high_V, middle_V)
    return (low_V + high_V) / 2


class Identity(Pointwise):
    """f(x) = x, for a plain softmax."""

    chunk_pass = ChunkPass

    def forward(self, logits: Tensor) -> Tensor:
        """Return the logits."""
        return logits
