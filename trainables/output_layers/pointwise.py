"""Functions of one logit, and how the chunked loss takes them and their derivative without N x V
arrays.

Shapes: n rows of a chunk, V vocabulary.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

GREATEST_BIAS = 40.0
BISECTIONS = 40
"""Of an interval of 80: down to the last bits of float32."""


class ChunkPass:
    """One pass of a loss over its chunks of rows: each chunk goes through f, then its gradient
    comes back; here, through the identity.

    Holds what f needs from one to the other, and the sums of its parameters' gradients over all
    chunks."""

    def apply_(self, logits_nV: Tensor) -> None:
        """Overwrite the logits with f of them, up to a constant, which the softmax cancels."""

    def pull_back_(self, gradient_nV: Tensor) -> None:
        """Overwrite the gradient by f with that by the logits of the last `apply_`, and add up the
        parameters'."""

    def gradients(self) -> tuple[Tensor, ...]:
        """The gradients of the function's parameters, in their order, over all chunks so far."""
        return ()


class Pointwise(nn.Module, ABC):
    """An increasing function f of one logit, applied to each.

    A subclass needs `forward` alone; its chunks then go through the framework's autograd. Those of
    this package bring a `ChunkPass` that is exact as well and several times faster."""

    learning_rate: float | None = None
    """The learning rate of the function's parameters; None: the model's."""
    start_range: tuple[float, float] | None = None
    """The logits between which a bounded f is steep enough to learn; None if f has no bound."""

    @abstractmethod
    def forward(self, logits: Tensor) -> Tensor:
        """f of every logit, in any shape; differentiable."""

    def chunk_pass(self, like_nV: Tensor) -> ChunkPass:
        """A pass over chunks of at most the shape of `like_nV`, of its dtype and on its device."""
        del like_nV
        return _AutogradPass(self)

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the parameters anew; here, leave them as they are."""


@torch.no_grad()
def centred_bias(function: Pointwise, log_p_V: Tensor) -> Tensor:
    """Logits x with log_softmax(f(x)) = log P, by bisection; of those that differ by a constant in
    f, the ones for which the mean of f is f(0). What f cannot reach within 40 of 0 stays at 40.

    Where f is bounded, x stays in its start range, and the constant is one with which f reaches the
    likeliest word: it is unlikely words that stay at the end of the range, as they weigh least in a
    loss."""
    low, high = function.start_range or (-GREATEST_BIAS, GREATEST_BIAS)
    value_V = log_p_V - log_p_V.mean() + function(torch.zeros_like(log_p_V[:1]))
    if function.start_range is not None:
        value_V -= (value_V.max() - function(torch.full_like(log_p_V[:1], high))).clamp(min=0)
    low_V, high_V = torch.full_like(log_p_V, low), torch.full_like(log_p_V, high)
    for _ in range(BISECTIONS):
        middle_V = (low_V + high_V) / 2
        below_V = function(middle_V.clone()) < value_V
        low_V = torch.where(below_V, middle_V, low_V)
        high_V = torch.where(below_V, high_V, middle_V)
    return (low_V + high_V) / 2


class Identity(Pointwise):
    """f(x) = x: the softmax itself."""

    def forward(self, logits: Tensor) -> Tensor:
        return logits

    def chunk_pass(self, like_nV: Tensor) -> ChunkPass:  # noqa: ARG002
        return ChunkPass()


class _AutogradPass(ChunkPass):
    """For any function: the chunk's own small graph, built and used up at once."""

    def __init__(self, function: Pointwise) -> None:
        self._function = function
        self._sums: dict[Tensor, Tensor] = {p: torch.zeros_like(p) for p in function.parameters()}

    def apply_(self, logits_nV: Tensor) -> None:
        with torch.enable_grad():
            self._input_nV = logits_nV.clone().requires_grad_()
            # A copy, which the function may overwrite.
            self._output_nV = self._function(self._input_nV.clone())
        if self._output_nV.shape != logits_nV.shape:
            raise ValueError(
                f"a function of logits gives one number for each; {type(self._function).__name__} "
                f"made {tuple(self._output_nV.shape)} of {tuple(logits_nV.shape)}: fix its forward"
            )
        logits_nV.copy_(self._output_nV.detach())

    def pull_back_(self, gradient_nV: Tensor) -> None:
        trained = [p for p in self._sums if p.requires_grad]
        by_input, *by_parameters = torch.autograd.grad(
            self._output_nV, [self._input_nV, *trained], gradient_nV, materialize_grads=True
        )
        gradient_nV.copy_(by_input)
        for parameter, gradient in zip(trained, by_parameters, strict=True):
            self._sums[parameter].add_(gradient)

    def gradients(self) -> tuple[Tensor, ...]:
        return tuple(self._sums.values())
