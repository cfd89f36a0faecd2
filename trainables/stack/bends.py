"""The functions of one logit of a stack: of one kind in all models, with parameters of every model's own.

Each overwrites a chunk of logits, G x m x V, and later the gradient by them; see `trainables.output_layers.pointwise`,
whose passes do the same for one model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from trainables.device import tensor_like
from trainables.output_layers import Identity, PiecewiseLinear, Pointwise, SmoothBend


class StackedPass(ABC):
    """One pass of a loss over its chunks: every chunk goes through f, then its gradient comes back."""

    @abstractmethod
    def apply_(self, logits_GmV: Tensor) -> None:
        """Overwrite the logits with f of them, up to a constant of the model."""

    @abstractmethod
    def pull_back_(self, gradient_GmV: Tensor) -> None:
        """Overwrite the gradient by f with that by the logits of the last `apply_`."""

    def gradients(self) -> tuple[Tensor, ...]:
        """By the functions' parameters, with a leading G, over all chunks so far."""
        return ()


class _BendPass(StackedPass):
    """Softmax, SigSoftmax and GSS: k (x - c) + c - (k - 1) softplus(x - c)."""

    def __init__(self, c_G: Tensor, k_G: Tensor) -> None:
        self._c_G11, self._k_G11 = c_G[:, None, None], k_G[:, None, None]
        self._sigmoid_GmV: Tensor

    def apply_(self, logits_GmV: Tensor) -> None:
        negated_GmV = logits_GmV.sub_(self._c_G11).neg()
        self._sigmoid_GmV = negated_GmV.sigmoid()
        torch.add(self._sigmoid_GmV, torch.finfo(logits_GmV.dtype).tiny, out=logits_GmV).log_()
        torch.minimum(logits_GmV, negated_GmV, out=logits_GmV).mul_(self._k_G11 - 1)
        logits_GmV.sub_(negated_GmV.mul_(self._k_G11))

    def pull_back_(self, gradient_GmV: Tensor) -> None:
        gradient_GmV.mul_(self._sigmoid_GmV.mul_(self._k_G11 - 1).add_(1.0))


class _IdentityPass(StackedPass):
    def apply_(self, logits_GmV: Tensor) -> None:
        """Nothing to do."""

    def pull_back_(self, gradient_GmV: Tensor) -> None:
        """Nothing to do."""


class _LookUpPass(StackedPass):
    """Piecewise linear functions; see the pass of one."""

    def __init__(self, function: PiecewiseLinear, weight_GK: Tensor) -> None:
        """`function` is any of the models': they differ in their weights alone."""
        self._function, self._weight_GK = function, weight_GK
        self._start_GK, self._rise_GK = function.tables_of(weight_GK, weight_GK.dtype)
        self._sum_start_GK, self._sum_rise_GK = torch.zeros_like(weight_GK), torch.zeros_like(weight_GK)
        models, knots = weight_GK.shape
        self._first_G11 = knots * torch.arange(models, device=weight_GK.device)[:, None, None]
        self._flat: Tensor
        self._places_GmV: Tensor
        self._rises_GmV: Tensor

    def apply_(self, logits_GmV: Tensor) -> None:
        self._places_GmV = logits_GmV.clone()
        indices = torch.empty(logits_GmV.shape, dtype=torch.int64, device=logits_GmV.device)
        self._function.locate_(self._places_GmV, indices, torch.empty_like(logits_GmV))
        self._flat = indices.add_(self._first_G11).view(-1)
        self._rises_GmV = self._rise_GK.view(-1)[self._flat].view(logits_GmV.shape)
        torch.index_select(self._start_GK.view(-1), 0, self._flat, out=logits_GmV.view(-1))
        logits_GmV.addcmul_(self._rises_GmV, self._places_GmV)

    def pull_back_(self, gradient_GmV: Tensor) -> None:
        self._sum_start_GK.view(-1).scatter_add_(0, self._flat, gradient_GmV.view(-1))
        self._sum_rise_GK.view(-1).scatter_add_(0, self._flat, self._places_GmV.mul_(gradient_GmV).view(-1))
        gradient_GmV.mul_(self._rises_GmV).mul_(1 / self._function.width)

    def gradients(self) -> tuple[Tensor, ...]:
        sums = self._sum_start_GK.double(), self._sum_rise_GK.double()
        return (self._function.gradient_of(self._weight_GK, *sums),)


def stacked_pass(functions: Sequence[Pointwise], weights: Sequence[Tensor], like: Tensor) -> StackedPass:
    """A pass through the functions of the models, whose parameters, with a leading G, are `weights`; logits will have
    the dtype and the device of `like`."""
    first = functions[0]
    if isinstance(first, PiecewiseLinear):
        return _LookUpPass(first, weights[0])
    if all(isinstance(function, Identity) for function in functions):
        return _IdentityPass()
    bends = [(f.c, f.k) if isinstance(f, SmoothBend) else (0.0, 1.0) for f in functions]
    return _BendPass(*tensor_like(bends, like).unbind(1))
